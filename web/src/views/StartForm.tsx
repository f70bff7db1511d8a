import { useEffect, useState } from 'react';
import { client, unwrap, type Refusal } from '../api/client';
import type { Project, Wanted } from '../api/types';
import { begin } from '../store/actions';
import { Refused } from './Parts';

type What = 'pipeline' | 'goal' | 'query' | 'line';

const kinds: { what: What; title: string; label: string; like: string }[] = [
  { what: 'pipeline', title: 'Pipeline', label: 'Pipeline of the compose file', like: 'main' },
  { what: 'goal', title: 'Team', label: 'Goal of the team', like: 'Write a program that prints Roman numerals' },
  { what: 'query', title: 'Swarm', label: 'Query that a swarm answers', like: 'Which of these documents contradict each other?' },
  { what: 'line', title: 'Line', label: 'Line, as in the REPL', like: '@coder Fix the failing test' },
];

/** StartForm starts a run from the compose file, a goal, a query or a line. */
export function StartForm({ close }: { close: () => void }) {
  const [chosen, setChosen] = useState<What>();
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  const project = useProject();
  const pipelines = project?.pipelines ?? [];
  // A file with agents only has nothing for a pipeline to do.
  const offered = kinds.filter((one) => one.what !== 'pipeline' || !project || project.tasks.length > 0 || pipelines.length > 0);
  const kind = offered.find((one) => one.what === chosen) ?? offered[0];
  const what = kind?.what ?? 'goal';
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        setBusy(true);
        void begin(wantedOf(what, text || (what === 'pipeline' ? (pipelines[0]?.name ?? '') : ''))).then((refused) => {
          if (!refused) return close();
          setProblem(refused);
          setBusy(false);
        });
      }}
    >
      <div className="segmented" role="radiogroup" aria-label="What to start">
        {offered.map((one) => (
          <button type="button" key={one.what} role="radio" aria-checked={one.what === what} onClick={() => setChosen(one.what)}>
            {one.title}
          </button>
        ))}
      </div>
      <label>
        {kind?.label}
        {what === 'pipeline' && pipelines.length > 0 ? (
          <select value={text || pipelines[0]?.name} onChange={(event) => setText(event.target.value)}>
            {pipelines.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        ) : (
          <textarea rows={what === 'pipeline' ? 1 : 4} value={text} placeholder={kind?.like} required={what !== 'pipeline'} onChange={(event) => setText(event.target.value)} autoFocus />
        )}
      </label>
      {project && (
        <p className="dim small">
          {project.file ?? 'swarm.yaml'} in {project.dir}
        </p>
      )}
      {(project?.problems ?? []).map((problem, index) => (
        <p className="refusal small" key={index}>
          {[problem.file, problem.line, problem.column].filter(Boolean).join(':')} {problem.error} <span className="dim">{problem.hint}</span>
        </p>
      ))}
      <Refused problem={problem} />
      <footer>
        <button className="primary" disabled={busy}>
          Start
        </button>
      </footer>
    </form>
  );
}

function wantedOf(what: What, text: string): Wanted {
  if (what === 'pipeline') return text ? { pipeline: text } : {};
  return { [what]: text };
}

/** useProject reads the folder's compose file as the server sees it. */
function useProject(): Project | undefined {
  const [project, setProject] = useState<Project>();
  useEffect(() => {
    const stop = new AbortController();
    unwrap(client.GET('/api/v1/project', { signal: stop.signal })).then(setProject, () => {});
    return () => stop.abort();
  }, []);
  return project;
}
