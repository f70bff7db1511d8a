import { useLayoutEffect, useRef } from 'react';
import type { FullTurn, Turn } from '../api/types';
import { excerpt } from '../lib/format';
import { speech, type Piece } from '../store/speech';
import { useStore } from '../store/store';
import { LongText } from './LongText';

const none: Piece[] = [];

/** Output shows what a turn said: as it streams while the turn runs, and whole when it has ended. */
export function Output({ turn, full, reason }: { turn?: Turn; full?: FullTurn; reason?: string }) {
  const heard = useStore(speech, (s) => (turn ? (s.turns[turn.id] ?? none) : none));
  if (!turn) return <p className="dim">This agent has had no turn yet.</p>;
  if (turn.status !== 'running') {
    return (
      <>
        {reason && <p className="refusal">{reason}</p>}
        {turn.hint && <p className="dim small">{turn.hint}</p>}
        {(turn.verdicts ?? []).map((verdict) => (
          <p key={verdict.part} className="small">
            <span className={verdict.ok ? 'tone-good' : 'tone-bad'}>{verdict.ok ? '✓' : '✗'}</span> {verdict.part} <span className="dim">{verdict.reason}</span>
          </p>
        ))}
        {full && (full.output_text ? <LongText text={full.output_text} label={`Output of ${turn.id}`} /> : <p className="dim">The turn said nothing.</p>)}
        {full?.result_text && (
          <>
            <h3>Result of its action</h3>
            <LongText text={full.result_text} label="Result of the action" />
          </>
        )}
      </>
    );
  }
  const pieces = heard.length > 0 ? heard : (full?.said ?? []).map((one) => ({ kind: one.kind, text: one.text ?? '' }));
  return <Stream pieces={pieces} />;
}

/** Stream follows the end of the text, unless the person has scrolled up. Its box has one size, so nothing jumps. */
function Stream({ pieces }: { pieces: Piece[] }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [pieces]);
  return (
    <div
      className="stream"
      ref={box}
      role="log"
      aria-label="Output as it streams"
      tabIndex={0}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        follows.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      {pieces.length === 0 && <p className="dim">It has its prompt and has said nothing yet.</p>}
      {pieces.map((piece, index) =>
        piece.kind === 'text' || piece.kind === 'thinking' || piece.kind === 'stderr' ? (
          <div key={index} className={`piece piece-${piece.kind}`}>
            <LongText text={piece.text} end label={piece.kind} />
          </div>
        ) : (
          <div key={index} className="piece piece-tool">
            <span className={piece.kind === 'tool_failed' ? 'tone-bad' : 'dim'}>{pieceSigns[piece.kind] ?? '·'}</span> {excerpt(piece.text, 300)}
          </div>
        ),
      )}
      <span className="cursor" aria-hidden="true" />
    </div>
  );
}

const pieceSigns: Record<string, string> = { tool: '⚒', tool_done: '✓', tool_failed: '✗', file: '✎', gap: '…' };
