import { useEffect, useState } from 'react';
import type { Refusal } from '../api/client';
import type { Envelope, FullTurn } from '../api/types';
import { excerpt } from '../lib/format';
import { forkRun } from '../store/actions';
import { runStore } from '../store/run';
import { loadTurn } from '../store/turns';
import { Refused } from './Parts';

/** ForkForm starts a new run that keeps every turn before this one, and begins it with an edited prompt or message. */
export function ForkForm({ turn, message = '', close }: { turn: string; message?: string; close: () => void }) {
  const run = runStore.get().id ?? '';
  const [full, setFull] = useState<FullTurn>();
  const [chosen, setChosen] = useState(message);
  const [text, setText] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  useEffect(() => {
    loadTurn(run, turn).then(setFull, setProblem);
  }, [run, turn]);
  const letters = full ? lettersOf(full) : [];
  const letter = letters.find((one) => one.id === chosen);
  const before = letter ? letter.payload.message : full?.prompt_text;
  const edit = text === undefined || text === before ? undefined : text;
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        setBusy(true);
        void forkRun(run, turn, edit, letter && edit !== undefined ? refOf(letter) : undefined).then((refused) => {
          if (!refused) return close();
          setProblem(refused);
          setBusy(false);
        });
      }}
    >
      <p className="dim small">A new run keeps every turn that was committed before this one. Edit the prompt or a message, or leave all as it is.</p>
      {letters.length > 0 && (
        <label>
          Edit
          <select
            value={letter?.id ?? ''}
            onChange={(event) => {
              setChosen(event.target.value);
              setText(undefined);
            }}
          >
            <option value="">the prompt</option>
            {letters.map((one) => (
              <option key={`${one.fromNodeId} ${one.id}`} value={one.id}>
                {`the message of ${one.fromNodeId}: ${excerpt(one.payload.message, 60)}`}
              </option>
            ))}
          </select>
        </label>
      )}
      <label>
        {letter ? `Message of ${letter.fromNodeId} to ${letter.toNodeId}` : `Prompt of ${turn}`}
        <textarea className="mono" rows={14} value={text ?? before ?? ''} onChange={(event) => setText(event.target.value)} disabled={!full} />
      </label>
      {letter?.payload.structured !== undefined && <p className="dim small">The message has a structured part, too. An edited message is sent without it.</p>}
      <Refused problem={problem} />
      <footer>
        <button className="primary" disabled={busy || !full}>
          Fork
        </button>
      </footer>
    </form>
  );
}

/** lettersOf returns the messages that a turn has read. A new run that begins with the turn has them unread. */
function lettersOf(turn: FullTurn): Envelope[] {
  const { from = 0, upto = 0 } = turn.inputs ?? {};
  return (runStore.get().report?.envelopes ?? []).filter(({ toNodeId, receipt }) => toNodeId === turn.agent && (receipt.turn === turn.id || (receipt.seq > from && receipt.seq <= upto)));
}

/** refOf names a message. Ids that an agent chose are its own, so the sender stands in front. */
const refOf = ({ id, fromNodeId }: Envelope): string => (fromNodeId === 'orchestrator' || id.startsWith('m-') ? id : `${fromNodeId}/${id}`);
