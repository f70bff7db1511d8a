import type { Report, Task, Topic } from '../api/types';
import { clockOf, cost, excerpt } from '../lib/format';
import { select, useRoute } from '../lib/route';
import { whyOf } from '../lib/why';
import { runStore } from '../store/run';
import { useStore } from '../store/store';
import { useTurn } from '../store/turns';
import { LongText } from '../inspector/LongText';
import { ArtifactItem } from './ArtifactItem';
import { Sign } from './Parts';
import { agentOf } from './steps';

/** Board shows tasks, topics and artifacts beside each other. */
export function Board() {
  const report = useStore(runStore, (s) => s.report);
  if (!report) return null;
  return (
    <div className="board">
      <Tasks report={report} />
      <section aria-label="Topics">
        <h2>
          Topics <span className="dim">{report.topics.length}</span>
        </h2>
        {report.topics.length === 0 && <p className="dim">No agent has published anything.</p>}
        {report.topics.map((topic) => (
          <TopicCard key={topic.topic} topic={topic} />
        ))}
      </section>
      <section aria-label="Artifacts">
        <h2>
          Artifacts <span className="dim">{report.artifacts.length}</span>
        </h2>
        {report.artifacts.length === 0 && <p className="dim">No agent has stored anything.</p>}
        <ul className="plain">
          {report.artifacts.map((artifact) => (
            <ArtifactItem key={`${artifact.ref} ${artifact.seq}`} run={report.run.id} artifact={artifact} />
          ))}
        </ul>
      </section>
    </div>
  );
}

function Tasks({ report }: { report: Report }) {
  const route = useRoute();
  const agent = agentOf(route);
  return (
    <section aria-label="Tasks">
      <h2>
        Tasks <span className="dim">{report.tasks.length}</span>
      </h2>
      <ul className="plain">
        {report.tasks.map((task) => (
          <li key={task.name}>
            <button className={`task${task.agent === agent ? ' selected' : ''}`} aria-pressed={task.agent === agent} onClick={() => select(task.turn ? { turn: task.turn } : { agent: task.agent })}>
              <Sign status={task.status} />
              <span className="task-main">
                <span>
                  {excerpt(task.name, 80)}
                  {task.agent !== task.name && <span className="dim"> · {task.agent}</span>}
                </span>
                {aboutOf(task) && <span className="dim small">{excerpt(aboutOf(task) ?? '', 200)}</span>}
              </span>
              <span className="dim small num">
                {task.iterations > 1 && `${task.iteration}/${task.iterations} `}
                {cost(task.usage)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {(report.run.notices ?? []).length > 0 && <h2>Notices</h2>}
      <ul className="plain">
        {(report.run.notices ?? []).slice(-20).map((notice) => (
          <li key={notice.seq} className="small notice">
            <span className="dim num">{clockOf(notice.time)}</span> {excerpt(notice.reason, 300)} {notice.hint && <span className="dim">{excerpt(notice.hint, 200)}</span>}
          </li>
        ))}
      </ul>
      {report.run.answer && (
        <>
          <h2>Answer</h2>
          <Answer run={report.run.id} turn={report.run.answer} />
        </>
      )}
      {report.run.report && (
        <>
          <h2>Report</h2>
          <LongText text={report.run.report} label="Report" />
        </>
      )}
      {(report.run.swarm?.task_list ?? []).length > 0 && <h2>Task list</h2>}
      <ul className="plain">
        {(report.run.swarm?.task_list ?? []).map((entry) => (
          <li key={entry.id} className="small">
            <b>{entry.state}</b> {excerpt(entry.description, 200)} <span className="dim">{entry.agent ?? entry.by}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Answer is what a swarm found: the output of the turn that answers. */
function Answer({ run, turn }: { run: string; turn: string }) {
  const full = useTurn(run, turn, 'completed');
  return (
    <>
      <button className="linklike small" onClick={() => select({ turn })}>
        {turn}
      </button>
      {full.value && <LongText text={full.value.output_text} label="Answer" />}
    </>
  );
}

/** aboutOf is the one thing that a person wants to know about a task: why it failed or waits, else what it is for. */
const aboutOf = (task: Task): string | undefined => task.reason ?? whyOf(task.waits) ?? task.doing ?? task.subtask?.description;

function TopicCard({ topic }: { topic: Topic }) {
  const last = topic.entries.slice(-50);
  return (
    <details className="topic" open>
      <summary>
        <b>{excerpt(topic.topic, 80)}</b> <span className="dim">{topic.entries.length}</span>
      </summary>
      <ol>
        {last.map((entry) => (
          <li key={entry.seq}>
            <button className="linklike small" onClick={() => select(entry.turn ? { turn: entry.turn } : { agent: entry.agent })}>
              {entry.agent}
            </button>{' '}
            <span className="dim small">{clockOf(entry.time)}</span>
            <LongText text={typeof entry.data === 'string' ? entry.data : JSON.stringify(entry.data, null, 2)} label={`Entry of ${entry.agent}`} />
          </li>
        ))}
      </ol>
    </details>
  );
}
