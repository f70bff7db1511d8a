import { useEffect, useState } from 'react';
import type { Approval, Report, Wait } from '../api/types';
import { ago, excerpt, visible } from '../lib/format';
import { useNow } from '../lib/now';
import { select } from '../lib/route';
import { isOver } from '../lib/status';
import { answerApproval, answerQuestion } from '../store/actions';
import { useStore } from '../store/store';
import { ui } from '../store/ui';

/** Needs shows what waits for the person in this run, with the buttons that end the waiting. */
export function Needs({ report }: { report: Report }) {
  const approvals = (report.run.approvals ?? []).filter((one) => !one.auto);
  const questions = questionsOf(report);
  const now = useNow(5000);
  if (approvals.length + questions.length === 0) return null;
  return (
    <section className="needs" aria-label="Needs you">
      {approvals.map((approval) => (
        <ApprovalCard key={approval.id} report={report} approval={approval} now={now} />
      ))}
      {questions.map((question) => (
        <QuestionCard key={question.id} run={report.run.id} question={question} now={now} />
      ))}
    </section>
  );
}

export interface Question {
  id: string;
  agent: string;
  text: string;
  since?: string;
}

/** questionsOf finds messages to which an agent waits for a person's answer. */
export function questionsOf(report: Report): Question[] {
  const found: Question[] = [];
  if (isOver(report.run.status)) return found;
  const waits: [string, Wait][] = [];
  for (const agent of report.agents) for (const wait of agent.waits ?? []) waits.push([agent.name, wait]);
  for (const [agent, wait] of waits) {
    const id = wait.reason ?? ''; // the message; question is its text
    if (!wait.question || found.some((one) => one.id === id)) continue;
    const envelope = report.envelopes.find((one) => one.id === id);
    found.push({ id, agent: envelope?.fromNodeId ?? agent, text: envelope?.payload.message ?? wait.question, since: wait.since });
  }
  for (const envelope of report.envelopes) {
    const asks = envelope.toNodeId === 'user' && envelope.payload.response?.expectation === 'required' && envelope.receipt.state !== 'answered';
    if (asks && !found.some((one) => one.id === envelope.id)) {
      found.push({ id: envelope.id, agent: envelope.fromNodeId, text: envelope.payload.message, since: envelope.createdAt });
    }
  }
  return found;
}

/** editable is what a person may change about a request: a spawn, an edge, the next attempt of a task, or the plan of a swarm. */
export function editable(approval: Approval, report: Report): unknown {
  if (approval.retry) return { inputs: approval.retry.inputs, note: '' };
  if (approval.id !== 'supervisor/plan') return approval.wish?.spawn ?? approval.wish?.edge;
  const subtasks = report.tasks.flatMap((task) => task.subtask ?? []);
  return { subtasks: subtasks.map(({ id, description, role, depends_on }) => ({ id, description, role, depends_on })) };
}

function ApprovalCard({ report, approval, now }: { report: Report; approval: Approval; now: number }) {
  const run = report.run.id;
  const [mode, setMode] = useState<'ask' | 'deny' | 'edit'>('ask');
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState('');
  const edit = editable(approval, report);
  const beginEdit = () => {
    setText(JSON.stringify(edit, null, 2));
    setMode('edit');
  };
  const wanted = useStore(ui, (s) => s.edits === approval.id);
  useEffect(() => {
    if (!wanted) return;
    ui.set({ edits: undefined });
    beginEdit();
    // The palette asks for it once.
  }, [wanted]);
  const approve = () => {
    if (mode !== 'edit') return void answerApproval(run, approval.id, true);
    try {
      void answerApproval(run, approval.id, true, { edit: JSON.parse(text) as never });
    } catch (problem) {
      setWrong(`This is no JSON: ${(problem as Error).message}`);
    }
  };
  return (
    <article className="need" id={`need-${approval.id}`} tabIndex={-1} aria-label={`Approval: ${excerpt(approval.text, 120)}`}>
      <div className="need-text">
        <span className="tone-wait" aria-hidden="true">
          ?
        </span>
        <button className="linklike" onClick={() => select(approval.turn ? { turn: approval.turn } : { agent: approval.agent })}>
          {approval.agent}
        </button>
        <span>wants to {excerpt(approval.text, 400)}</span>
        <span className="dim">· asked {ago(approval.asked, now)}</span>
      </div>
      {approval.tool && approval.input !== undefined && <Input tool={approval.tool} input={approval.input} />}
      {mode === 'deny' && <input aria-label="Why not" placeholder="Why not? The agent is told." value={text} onChange={(event) => setText(event.target.value)} autoFocus />}
      {mode === 'edit' && <textarea className="mono" rows={8} aria-label="What is allowed instead" value={text} onChange={(event) => setText(event.target.value)} autoFocus />}
      {wrong && <p className="refusal small">{wrong}</p>}
      <div className="need-actions">
        {mode !== 'deny' && (
          <button className="primary" onClick={approve}>
            {mode === 'edit' ? 'Approve as edited' : 'Approve'}
          </button>
        )}
        {mode !== 'edit' && (
          <button className="danger" onClick={() => (mode === 'deny' ? void answerApproval(run, approval.id, false, { reason: text || undefined }) : setMode('deny'))}>
            Deny
          </button>
        )}
        {mode === 'ask' && edit !== undefined && (
          <button onClick={beginEdit}>Edit</button>
        )}
        {mode !== 'ask' && (
          <button className="quiet" onClick={() => setMode('ask')}>
            Back
          </button>
        )}
      </div>
    </article>
  );
}

function Input({ tool, input }: { tool: string; input: unknown }) {
  const text = typeof input === 'string' ? input : JSON.stringify(input, null, 2);
  return (
    <pre className="need-input" tabIndex={0} aria-label={`Input of ${tool}`}>
      {visible(`${tool} ${text}`.slice(0, 4000))}
    </pre>
  );
}

function QuestionCard({ run, question, now }: { run: string; question: Question; now: number }) {
  const [text, setText] = useState('');
  return (
    <article className="need" id={`need-${question.id}`} tabIndex={-1} aria-label={`Question of ${question.agent}`}>
      <div className="need-text">
        <span className="tone-wait" aria-hidden="true">
          ?
        </span>
        <button className="linklike" onClick={() => select({ agent: question.agent })}>
          {question.agent}
        </button>
        <span>asks: {excerpt(question.text, 400)}</span>
        <span className="dim">· asked {ago(question.since, now)}</span>
      </div>
      <form
        className="need-actions"
        onSubmit={(event) => {
          event.preventDefault();
          void answerQuestion(run, question.agent, question.id, text).then((ok) => ok && setText(''));
        }}
      >
        <input aria-label={`Answer ${question.agent}`} placeholder="Your answer" value={text} onChange={(event) => setText(event.target.value)} required />
        <button className="primary">Answer</button>
      </form>
    </article>
  );
}
