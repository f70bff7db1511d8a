import { useEffect, useRef, useState } from 'react';
import type { Summary } from '../api/types';
import { ago, cost, dayOf, duration, excerpt, ms } from '../lib/format';
import { useNow } from '../lib/now';
import { isLeft, isOver } from '../lib/status';
import { groups, loadOlder, needsOf, runsStore, search } from '../store/runs';
import { useStore } from '../store/store';
import { ui } from '../store/ui';
import { Empty, Link, Progress, Sign, Tools } from './Parts';

/** Runs is the list of runs: what needs the person first, then what runs, then what was left, then the rest. */
export function Runs() {
  const state = useStore(runsStore, (s) => s);
  const now = useNow();
  useEffect(() => {
    document.title = 'Runs · swarm';
  }, []);
  const found = groups(state.runs);
  return (
    <div className="page">
      <header className="top">
        <h1 className="brand">swarm</h1>
        <Search />
        <span className="grow" />
        <button className="primary" onClick={() => ui.set({ dialog: { kind: 'start' } })}>
          Start a run
        </button>
        <Tools />
      </header>
      <main className="runs" aria-busy={!state.loaded}>
        {state.connection === 'lost' && <p className="banner" role="status">The server does not answer. The page tries again.</p>}
        {state.problem && (
          <p className="banner bad" role="alert">
            {state.problem.message} <span className="dim">{state.problem.hint}</span>
          </p>
        )}
        {found.map((group) => (
          <section key={group.title} aria-label={group.title}>
            <h2>
              {group.title} <span className="dim">{group.runs.length}</span>
            </h2>
            <ul className="run-list">
              {group.runs.map((run) => (
                <RunRow key={run.id} run={run} now={now} />
              ))}
            </ul>
          </section>
        ))}
        {state.loaded && state.runs.length === 0 && (
          <Empty title={state.query ? 'No run has these words.' : 'There are no runs yet.'}>
            {state.query ? 'Search looks at name, kind, folder, goal and query.' : 'Start one here, or in a terminal with swarm up, swarm team or swarm solve.'}
          </Empty>
        )}
        {state.next && (
          <button className="older" onClick={() => void loadOlder()}>
            Show older runs
          </button>
        )}
      </main>
    </div>
  );
}

function Search() {
  const query = useStore(runsStore, (s) => s.query);
  const [text, setText] = useState(query);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  return (
    <input
      id="search"
      type="search"
      className="search"
      placeholder="Search runs  /"
      aria-label="Search runs"
      value={text}
      onChange={(event) => {
        setText(event.target.value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => void search(event.target.value.trim()), 120);
      }}
    />
  );
}

function RunRow({ run, now }: { run: Summary; now: number }) {
  const needs = needsOf(run);
  const total = run.tasks ?? 0;
  const done = run.done ?? 0;
  const end = run.ended ? ms(run.ended) : now;
  return (
    <li>
      <Link to={{ run: run.id }} className={needs.length > 0 ? 'run-row needy' : 'run-row'} data-run={run.id}>
        <Sign status={run.status} />
        <span className="run-main">
          <span className="run-name">{excerpt(run.name || run.id, 200)}</span>
          <span className="run-sub dim">
            {run.kind} · <span title={run.dir}>{folder(run.dir)}</span> · <span title={dayOf(run.started)}>{ago(run.started, now)}</span>
          </span>
          {needs.slice(0, 3).map((need) => (
            <span className="need-line" key={`${need.kind} ${need.id ?? need.text}`}>
              <NeedSign kind={need.kind} /> {excerpt(need.text, 220)}
            </span>
          ))}
          {needs.length > 3 && <span className="need-line dim">and {needs.length - 3} more</span>}
          {run.problem && <span className="need-line dim">{excerpt(run.problem, 200)}</span>}
        </span>
        <span className="run-progress">
          {total > 0 && (
            <>
              <Progress done={done} total={total} label={`${done} of ${total} done`} />
              <span className="dim num">
                {done}/{total}
              </span>
            </>
          )}
        </span>
        <span className="run-cost num">{cost(run.usage)}</span>
        <span className="run-time num dim">{run.started && !isLeft(run.status) ? duration(end - ms(run.started)) : ''}</span>
        <span className="run-state dim">{isOver(run.status) || needs.length === 0 ? run.status : 'needs you'}</span>
      </Link>
    </li>
  );
}

const needLooks: Record<string, [string, string]> = {
  approval: ['?', 'wait'],
  question: ['?', 'wait'],
  stalled: ['◌', 'wait'],
  failed: ['✗', 'bad'],
};

function NeedSign({ kind }: { kind: string }) {
  const [sign, tone] = needLooks[kind] ?? ['?', 'wait'];
  return (
    <span className={`tone-${tone}`} role="img" aria-label={kind}>
      {sign}
    </span>
  );
}

/** folder is the last two parts of a path: enough to know it by. */
const folder = (dir?: string) => (dir ?? '').split('/').filter(Boolean).slice(-2).join('/');
