import { useEffect, useState } from 'react';
import type { Refusal } from '../api/client';
import { forkRun } from '../store/actions';
import { loadTurn } from '../store/turns';
import { runStore } from '../store/run';
import { Refused } from './Parts';

/** ForkForm starts a new run that keeps every turn before this one and begins it with an edited prompt. */
export function ForkForm({ turn, close }: { turn: string; close: () => void }) {
  const run = runStore.get().id ?? '';
  const [prompt, setPrompt] = useState<string>();
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  useEffect(() => {
    loadTurn(run, turn).then(
      (full) => {
        setPrompt(full.prompt_text);
        setText(full.prompt_text);
      },
      () => setPrompt(''),
    );
  }, [run, turn]);
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        setBusy(true);
        void forkRun(run, turn, text === prompt ? undefined : text).then((refused) => {
          if (!refused) return close();
          setProblem(refused);
          setBusy(false);
        });
      }}
    >
      <p className="dim small">A new run keeps every turn that was committed before this one. Edit the prompt, or leave it as it is.</p>
      <label>
        Prompt of {turn}
        <textarea className="mono" rows={14} value={text} onChange={(event) => setText(event.target.value)} disabled={prompt === undefined} />
      </label>
      <Refused problem={problem} />
      <footer>
        <button className="primary" disabled={busy || prompt === undefined}>
          Fork
        </button>
      </footer>
    </form>
  );
}
