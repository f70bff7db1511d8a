import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Report } from '../api/types';
import { clockTo, duration, excerpt } from '../lib/format';
import { chartOf, type Chart, type Gap } from '../lib/gantt';
import { select, useRoute } from '../lib/route';
import { useScale } from '../lib/scale';
import { toneOf } from '../lib/status';
import { usePauses } from '../store/asked';
import { useMoment } from '../store/moment';
import { runStore } from '../store/run';
import { useStore } from '../store/store';
import { Empty } from './Parts';
import { agentOf } from './steps';

/** Measures of the chart, in pixels. */
const measures = (scale: number) => ({ row: 34 * scale, label: 128 * scale, axis: 26 * scale, bar: 6 * scale, char: 7 * scale });
type Measures = ReturnType<typeof measures>;

/** Timeline is a Gantt chart: turns and waits of each agent, and what ended each wait. */
export function Timeline() {
  const report = useStore(runStore, (s) => s.report);
  return report ? <Zoomed report={report} /> : null;
}

function Zoomed({ report }: { report: Report }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  const size = measures(useScale());
  const moment = useMoment(report, 500);
  const pauses = usePauses(report);
  const chart = useMemo(() => chartOf(report, moment, pauses), [report, moment, pauses]);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width - size.label - 16));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [size.label]);
  const [zoom, setZoom] = useZoom(box, size.label, Math.max(200, width));
  const inner = Math.max(200, width) * zoom;
  return (
    <div className="timeline">
      <div className="row timeline-tools">
        <button aria-label="Zoom out" onClick={() => setZoom(zoom / 1.6)}>
          −
        </button>
        <button aria-label="Zoom in" onClick={() => setZoom(zoom * 1.6)}>
          +
        </button>
        <button onClick={() => setZoom(1)}>Whole run</button>
        <span className="dim small">Ctrl and wheel zoom. Dashes are waits: point at one to see why.</span>
      </div>
      <div
        className="timeline-scroll"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label="Turns and waits in time"
      >
        {report.turns.length === 0 ? <Empty title="No turn has begun yet." /> : <Gantt chart={chart} inner={inner} size={size} />}
      </div>
    </div>
  );
}

/** useZoom returns how wide the chart is, by its width of the whole run. What is under the pointer, or in the middle, stays there. */
function useZoom(box: React.RefObject<HTMLDivElement | null>, label: number, whole: number): [number, (zoom: number) => void] {
  const [zoom, setZoom] = useState(1);
  const anchor = useRef({ share: 0, at: 0 });
  const change = (next: number, at?: number) => {
    const { scrollLeft = 0, clientWidth = 0 } = box.current ?? {};
    const x = (at ?? label + (clientWidth - label) / 2) - label;
    anchor.current = { share: (scrollLeft + x) / (whole * zoom), at: x };
    setZoom(Math.max(1, Math.min(400, next)));
  };
  useLayoutEffect(() => {
    if (box.current) box.current.scrollLeft = anchor.current.share * whole * zoom - anchor.current.at;
    // Only the zoom moves the chart.
  }, [zoom]);
  useEffect(() => {
    const element = box.current;
    // React listens to wheels without a way to keep the browser from zooming the whole page.
    const turn = (event: WheelEvent) => {
      if (!event.ctrlKey || !element) return;
      event.preventDefault();
      change(zoom * (event.deltaY < 0 ? 1.2 : 1 / 1.2), event.clientX - element.getBoundingClientRect().left);
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  });
  return [zoom, change];
}

function Gantt({ chart, inner, size }: { chart: Chart; inner: number; size: Measures }) {
  const route = useRoute();
  const agent = agentOf(route);
  const span = Math.max(1, chart.to - chart.from);
  const x = (time: number) => ((time - chart.from) / span) * inner;
  const rowOf = new Map(chart.rows.map((row, index) => [row.agent, index]));
  const height = size.axis + chart.rows.length * size.row;
  const y = (row: number) => size.axis + row * size.row;
  const { times, label } = ticks(chart.from, chart.to, inner, size);
  return (
    <div className="gantt" style={{ width: size.label + inner + 8, height }}>
      <div className="gantt-labels" style={{ width: size.label }}>
        {chart.rows.map((row, index) => (
          <button key={row.agent} className={row.agent === agent ? 'gantt-label selected' : 'gantt-label'} style={{ top: y(index), height: size.row }} onClick={() => select({ agent: row.agent })}>
            {excerpt(row.agent, 18)}
          </button>
        ))}
      </div>
      <svg width={inner + 8} height={height} role="group" aria-label="Gantt chart" style={{ left: size.label }}>
        {times.map((time) => (
          <g key={time} className="tick">
            <line x1={x(time)} x2={x(time)} y1={size.axis - 6} y2={height} />
            <text x={x(time) + 4} y={size.axis - 12}>
              {label(time)}
            </text>
          </g>
        ))}
        {chart.rows.map((row, index) => (
          <g key={row.agent} className={row.agent === agent ? 'gantt-row selected' : 'gantt-row'}>
            {row.gaps.map((gap) => (
              <Wait key={gap.from} gap={gap} x1={x(gap.from)} x2={x(gap.to)} y={y(index) + size.row / 2} char={size.char} />
            ))}
            {row.bars.map((bar) => (
              <g
                key={bar.turn.id}
                className={`turn-bar tone-${toneOf(bar.turn.status)}${route.turn === bar.turn.id ? ' selected' : ''}`}
                role="button"
                tabIndex={0}
                aria-label={`Turn ${bar.turn.id}, ${bar.turn.status}, ${duration(bar.to - bar.from)}`}
                onClick={() => select({ turn: bar.turn.id })}
                onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ') && select({ turn: bar.turn.id })}
              >
                <title>{`${bar.turn.id} · ${bar.turn.status} · ${duration(bar.to - bar.from)}`}</title>
                <rect x={x(bar.from)} y={y(index) + size.bar} width={Math.max(3, x(bar.to) - x(bar.from))} height={size.row - 2 * size.bar} rx={4} />
                {bar.pauses.map((pause) => (
                  <Paused key={pause.from} pause={pause} x1={x(pause.from)} x2={x(pause.to)} y={y(index) + size.bar} height={size.row - 2 * size.bar} />
                ))}
                {x(bar.to) - x(bar.from) > size.char * (bar.turn.id.length + 2) && (
                  <text x={x(bar.from) + 7} y={y(index) + size.row / 2} dominantBaseline="central">
                    {bar.turn.id}
                  </text>
                )}
              </g>
            ))}
          </g>
        ))}
        {chart.leads.map((lead) => {
          const from = rowOf.get(lead.fromAgent);
          const to = rowOf.get(lead.toAgent);
          if (from === undefined || to === undefined) return null;
          const [x1, x2, y1, y2] = [x(lead.fromTime), x(lead.toTime), y(from) + size.row / 2, y(to) + size.row / 2];
          const chosen = route.turn === lead.turn || (route.message !== undefined && route.message === lead.message);
          return <path key={`${lead.turn} ${lead.message ?? ''}`} className={chosen ? 'lead selected' : 'lead'} d={`M${x1} ${y1} C ${x1 + 14} ${y1}, ${x2 - 14} ${y2}, ${x2} ${y2}`} />;
        })}
      </svg>
    </div>
  );
}

/** Paused is the part of a turn that waited for a person: hollow, with dashes, where the rest of the turn is solid. */
function Paused({ pause, x1, x2, y, height }: { pause: Gap; x1: number; x2: number; y: number; height: number }) {
  if (x2 - x1 < 2) return null;
  const label = `${pause.why} · ${duration(pause.to - pause.from)}`;
  return (
    <g className="paused" role="img" aria-label={label}>
      <title>{label}</title>
      <rect x={x1} y={y} width={x2 - x1} height={height} />
      <line x1={x1} x2={x2} y1={y + height / 2} y2={y + height / 2} />
    </g>
  );
}

function Wait({ gap, x1, x2, y, char }: { gap: Gap; x1: number; x2: number; y: number; char: number }) {
  if (x2 - x1 < 2) return null;
  const label = `${gap.why} · ${duration(gap.to - gap.from)}`;
  return (
    <g className="wait" role="img" aria-label={label}>
      <title>{label}</title>
      <line className="wait-hit" x1={x1} x2={x2} y1={y} y2={y} />
      <line x1={x1 + 2} x2={x2 - 2} y1={y} y2={y} />
      {x2 - x1 > 24 * char && (
        <text x={x1 + 8} y={y - 5}>
          {excerpt(gap.why, Math.floor((x2 - x1) / char))}
        </text>
      )}
    </g>
  );
}

/** ticks returns round times, with room for a label between two of them, and what writes a label. */
function ticks(from: number, to: number, width: number, size: Measures): { times: number[]; label: (time: number) => string } {
  const wanted = ((to - from) / Math.max(1, width)) * 18 * size.char;
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 21600e3, 43200e3, 86400e3];
  const step = steps.find((one) => one >= wanted) ?? 86400e3;
  const times: number[] = [];
  for (let time = Math.ceil(from / step) * step; time <= to && times.length < 2000; time += step) times.push(time);
  return { times, label: clockTo(step) };
}
