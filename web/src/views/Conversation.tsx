import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { Envelope } from '../api/types';
import { clockOf, excerpt } from '../lib/format';
import { select, useRoute } from '../lib/route';
import { useScale } from '../lib/scale';
import { editedWords, receiptSigns, receiptWords } from '../lib/status';
import { runStore } from '../store/run';
import { useStore } from '../store/store';
import { Empty } from './Parts';
import { agentOf } from './steps';

/** Measures of the lanes and rows, in pixels. Times stand at the left of the first lane. */
const measures = (scale: number) => ({ narrowest: 132 * scale, widest: 280 * scale, row: 46 * scale, time: 90 * scale });
type Measures = ReturnType<typeof measures>;
const mostLanes = 24;

/** Conversation shows who told whom what, in order, with each envelope's receipt. */
export function Conversation() {
  const report = useStore(runStore, (s) => s.report);
  const box = useRef<HTMLDivElement>(null);
  const wide = useWide(box);
  const size = measures(useScale());
  const route = useRoute();
  const envelopes = report?.envelopes ?? [];
  const names = useMemo(() => lanesOf(envelopes), [envelopes]);
  const rows = useVirtualizer({ count: envelopes.length, getScrollElement: () => box.current, estimateSize: () => size.row, overscan: 12 });
  useEffect(() => rows.measure(), [size.row]);
  const agent = agentOf(route);
  const sequence = wide > 700 && names.length <= mostLanes;
  const lane = Math.max(size.narrowest, Math.min(size.widest, (wide - size.time - 10) / Math.max(1, names.length)));
  useEffect(() => {
    const at = route.message ? envelopes.findIndex((one) => one.id === route.message) : -1;
    if (at >= 0) rows.scrollToIndex(at, { align: 'auto' });
    // Only a new selection scrolls.
  }, [route.message]);
  if (envelopes.length === 0 && report) return <Empty title="Nobody has written to anybody yet." />;
  return (
    <div className="conversation" ref={box} tabIndex={0} role="region" aria-label="Messages in order">
      {sequence && (
        <div className="lanes" style={{ width: names.length * lane + size.time }}>
          {names.map((name, index) => (
            <button key={name} className={name === agent ? 'lane selected' : 'lane'} style={{ left: size.time + index * lane, width: lane }} onClick={() => select({ agent: name })}>
              {excerpt(name, 16)}
            </button>
          ))}
        </div>
      )}
      <div className="conversation-rows" style={{ height: rows.getTotalSize(), width: sequence ? names.length * lane + size.time : undefined }}>
        {sequence && names.map((name, index) => <span key={name} className="lifeline" style={{ left: size.time + (index + 0.5) * lane }} aria-hidden="true" />)}
        {rows.getVirtualItems().map((item) => {
          const envelope = envelopes[item.index];
          if (!envelope) return null;
          return (
            <Row key={item.key} envelope={envelope} top={item.start} names={sequence ? names : undefined} lane={lane} size={size} selected={route.message === envelope.id} dimmed={Boolean(agent) && !route.message && envelope.fromNodeId !== agent && envelope.toNodeId !== agent} />
          );
        })}
      </div>
    </div>
  );
}

/** lanesOf orders agents as they first speak or are spoken to. */
function lanesOf(envelopes: Envelope[]): string[] {
  const names = new Set<string>();
  for (const one of envelopes) names.add(one.fromNodeId).add(one.toNodeId);
  return [...names];
}

function Row({ envelope, top, names, lane, size, selected, dimmed }: { envelope: Envelope; top: number; names?: string[]; lane: number; size: Measures; selected: boolean; dimmed: boolean }) {
  const { receipt } = envelope;
  const text = `${receipt.edited ? `(${editedWords(receipt)}) ` : ''}${excerpt(envelope.payload.message, 140)}`;
  const label = `${envelope.fromNodeId} to ${envelope.toNodeId}, ${receiptWords[receipt.state]}: ${text}`;
  const mark = (
    <span className={receipt.state === 'undeliverable' ? 'tone-bad' : 'tone-active'} title={receiptWords[receipt.state]}>
      {receiptSigns[receipt.state]}
    </span>
  );
  return (
    <button className={`message${selected ? ' selected' : ''}${dimmed ? ' dimmed' : ''}`} aria-label={label} aria-pressed={selected} style={{ top, height: size.row }} onClick={() => select({ message: envelope.id })}>
      <span className="message-time dim num">{clockOf(envelope.createdAt)}</span>
      {names ? (
        <Arrow lane={lane} time={size.time} from={names.indexOf(envelope.fromNodeId)} to={names.indexOf(envelope.toNodeId)} text={text} mark={mark} signal={envelope.kind === 'signal'} />
      ) : (
        <span className="message-plain">
          <span>
            {mark} {envelope.fromNodeId} → {envelope.toNodeId}
          </span>
          <span className="dim">{text}</span>
        </span>
      )}
    </button>
  );
}

function Arrow({ lane, time, from, to, text, mark, signal }: { lane: number; time: number; from: number; to: number; text: string; mark: React.ReactNode; signal: boolean }) {
  const left = time + (Math.min(from, to) + 0.5) * lane;
  const width = Math.max(0.5, Math.abs(to - from)) * lane;
  return (
    <span className={`arrow${to < from ? ' leftward' : ''}${signal ? ' signal' : ''}`} style={{ left, width }}>
      <span className="arrow-text">
        {mark} {text}
      </span>
      <span className="arrow-line" aria-hidden="true" />
    </span>
  );
}

/** useWide returns the width of an element, which decides between lanes and a list. */
function useWide(ref: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(1000);
  useEffect(() => {
    if (!ref.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    watch.observe(ref.current);
    return () => watch.disconnect();
  });
  return width;
}
