import { useEffect } from 'react';
import { cost, dayOf, duration, excerpt, ms } from '../lib/format';
import { exported, go, routeNow, useRoute, views, type Route, type View } from '../lib/route';
import { canRetry, isOver } from '../lib/status';
import { cancelRun, closeRun, exportOf, pauseRun, resumeRun, retryRun } from '../store/actions';
import { useFeatures } from '../store/features';
import { useMoment } from '../store/moment';
import { runStore, showOlder, watchRun } from '../store/run';
import { useStore } from '../store/store';
import { Graph } from '../graph/Graph';
import { Inspector } from '../inspector/Inspector';
import { Board } from './Board';
import { Conversation } from './Conversation';
import { Needs } from './Needs';
import { Badge, Link, Progress, Refused, Tools } from './Parts';
import { Review } from './Review';
import { Scrubber } from './Scrubber';
import { Timeline } from './Timeline';
import { useSteps } from './steps';
import type { Report } from '../api/types';

const titles: Record<View, string> = { graph: 'Graph', timeline: 'Timeline', conversation: 'Conversation', board: 'Board', review: 'Review' };
const bodies: Record<View, () => React.ReactNode> = { graph: () => <Graph />, timeline: () => <Timeline />, conversation: () => <Conversation />, board: () => <Board />, review: () => <Review /> };

/** RunPage is one run: its top, what needs the person, one of the views, and the inspector of what is selected. */
export function RunPage({ id, at }: { id: string; at?: number }) {
  const route = useRoute();
  const can = useFeatures();
  const report = useStore(runStore, (s) => (s.id === id ? s.report : undefined));
  const problem = useStore(runStore, (s) => s.problem);
  const listed = useStore(runStore, (s) => s.listed);
  useEffect(() => watchRun(id, at), [id, at]);
  useSteps();
  useEffect(() => {
    document.title = `${report ? excerpt(report.run.name || id, 40) : id} · swarm`;
  }, [id, report]);
  const selected = Boolean(route.agent ?? route.turn ?? route.message);
  return (
    <div className="page run-page">
      <Top id={id} report={report} />
      <nav className="tabs" aria-label="Views">
        {views.filter((view) => view !== 'review' || can.diff).map((view, index) => (
          <Link key={view} to={placeOf(route, view)} aria-current={route.view === view ? 'page' : undefined} aria-keyshortcuts={String(index + 1)}>
            {titles[view]}
          </Link>
        ))}
        <span className="grow" />
        <ConnectionNote />
      </nav>
      {report && !at && !exported && <Needs report={report} />}
      {report?.run.reason && !at && !report.run.approvals?.length && (
        <section aria-label="Why" className={report.run.status === 'failed' ? 'reason bad' : 'reason'}>
          {excerpt(report.run.reason, 400)}
        </section>
      )}
      {report?.run.report && !at && (
        <section aria-label="Report" className="reason row">
          <span className="grow">reported: {excerpt(report.run.report, 240)}</span>
          {route.view !== 'board' && <Link to={{ ...route, view: 'board' }}>Read it on the board</Link>}
        </section>
      )}
      {problem && (!report || at) && <Refused problem={problem} />}
      {report && listed && <OlderNote report={report} view={route.view} />}
      {report && (
        <main className={selected ? 'work split' : 'work'}>
          <section className={`view view-${route.view}`} aria-label={titles[route.view]}>
            {listed || route.view === 'graph' ? bodies[route.view]() : <p className="dim empty">Reading the run…</p>}
          </section>
          {selected && <Inspector report={report} />}
        </main>
      )}
      {can.past && <Scrubber />}
    </div>
  );
}

/** placeOf is a view of what is selected. On a narrow screen the inspector covers the views, so choosing one closes it. */
const placeOf = (route: Route, view: View): Partial<Route> => (innerWidth > 820 ? { ...route, view } : { run: route.run, at: route.at, view });

const olderWords: Partial<Record<View, (older: NonNullable<Report['older']>) => [number | undefined, string]>> = {
  timeline: (older) => [older.turns, 'turns'],
  conversation: (older) => [older.envelopes, 'messages'],
  board: (older) => [(older.entries ?? 0) + (older.artifacts ?? 0), 'entries of topics and artifacts'],
  review: (older) => [older.turns, 'turns'],
};

/** OlderNote says what a long run has that its lists do not. */
function OlderNote({ report, view }: { report: Report; view: View }) {
  const [count, word] = (report.older && olderWords[view]?.(report.older)) ?? [];
  if (!count) return null;
  return (
    <p className="reason small dim">
      {count.toLocaleString()} older {word} are not shown.{' '}
      <button className="linklike" onClick={showOlder}>
        Show more
      </button>
    </p>
  );
}

function Top({ id, report }: { id: string; report?: Report }) {
  const run = report?.run;
  const tasks = report?.tasks ?? [];
  const done = tasks.filter((task) => task.status === 'completed').length;
  return (
    <header className="top">
      {exported ? <span className="brand">swarm</span> : <Link to={{}} className="brand" aria-label="All runs">swarm</Link>}
      <h1 className="run-title" title={id}>
        {run ? excerpt(run.name || id, 120) : id}
      </h1>
      {run && <Badge status={run.status} />}
      {run && tasks.length > 0 && (
        <span className="wide-only top-fact">
          <Progress done={done} total={tasks.length} label={`${done} of ${tasks.length} tasks done`} />
          <span className="num dim">
            {done}/{tasks.length}
          </span>
        </span>
      )}
      {run && <Facts report={report} />}
      <span className="grow" />
      {run && !exported && <RunActions id={run.id} status={run.status} kind={run.kind} />}
      <ExportMenu id={id} />
      <span className="wide-only tools">
        <Tools />
      </span>
    </header>
  );
}

function Facts({ report }: { report: Report }) {
  const moment = useMoment(report);
  const { run, usage } = report;
  const budget = run.budget?.usd ? ` of $${run.budget.usd}` : run.budget?.calls ? ` · ${usage.calls ?? 0} of ${run.budget.calls} calls` : '';
  return (
    <span className="top-fact num dim wide-only" title={`started ${dayOf(run.started)}`}>
      {cost(usage)}
      {budget}
      {run.started ? ` · ${duration(moment - ms(run.started))}` : ''}
    </span>
  );
}

function RunActions({ id, status, kind }: { id: string; status: string; kind?: string }) {
  if (isOver(status) && !canRetry(status, kind)) return null;
  if (isOver(status)) return <button onClick={() => void retryRun(id)}>Retry</button>;
  const paused = status === 'paused' || status === 'pausing' || status === 'interrupted';
  return (
    <>
      {paused ? (
        <button className="primary" onClick={() => void resumeRun(id)}>
          Resume
        </button>
      ) : (
        <button onClick={() => void pauseRun(id)}>Pause</button>
      )}
      {kind === 'team' && !paused && (
        <button className="wide-only" onClick={() => void closeRun(id)} title="End the team after the turns that it has now">
          Close
        </button>
      )}
      <button className="danger" onClick={() => confirm('Stop this run for good?') && void cancelRun(id)}>
        Stop
      </button>
    </>
  );
}

function ExportMenu({ id }: { id: string }) {
  if (!useFeatures().export) return null;
  return (
    <details className="menu wide-only">
      <summary>Export</summary>
      <div className="menu-items">
        <a {...exportOf(id, 'html')}>One HTML file</a>
        <a {...exportOf(id, 'json')}>JSON</a>
      </div>
    </details>
  );
}

function ConnectionNote() {
  const connection = useStore(runStore, (s) => s.connection);
  const at = useStore(runStore, (s) => s.at);
  if (exported) return <span className="dim">exported file</span>;
  if (at)
    return (
      <button className="quiet" onClick={() => go({ ...routeNow(), at: undefined })}>
        the past, event {at} · back to now
      </button>
    );
  if (connection === 'lost') return <span className="tone-wait" role="status">connection lost, trying again</span>;
  if (connection === 'live') return <span className="dim live-note">live</span>;
  return null;
}
