import { client, Refusal, unwrap } from '../api/client';
import type { Wanted } from '../api/types';
import { go } from '../lib/route';
import { attempt, tell } from './ui';

const runAt = (id: string) => ({ params: { path: { id } } });

/** What a person does to a run. Each function says what came of it. */
export const pauseRun = (id: string) => attempt(unwrap(client.POST('/api/v1/runs/{id}/pause', runAt(id))), 'The run pauses after its running turns.');
export const resumeRun = (id: string) => attempt(unwrap(client.POST('/api/v1/runs/{id}/resume', runAt(id))), 'The run goes on.');
export const cancelRun = (id: string) => attempt(unwrap(client.POST('/api/v1/runs/{id}/cancel', runAt(id))), 'The run is stopped.');
export const closeRun = (id: string) => attempt(unwrap(client.POST('/api/v1/runs/{id}/close', runAt(id))), 'The team ends after the turns that it has now.');

export type AgentAction = 'start' | 'stop' | 'pause' | 'resume' | 'reset';

const done: Record<AgentAction, string> = {
  start: 'gets turns again.',
  stop: 'gets no more turns.',
  pause: 'pauses after its turn.',
  resume: 'gets turns again.',
  reset: 'begins its turn anew, in a new session.',
};

export const actOnAgent = (id: string, agent: string, action: AgentAction) =>
  attempt(unwrap(client.POST('/api/v1/runs/{id}/nodes/{agent}/{action}', { params: { path: { id, agent, action } } })), `${agent} ${done[action]}`);

export const sendMessage = (id: string, to: string, text: string, how: 'queue' | 'interrupt') =>
  attempt(
    unwrap(client.POST('/api/v1/runs/{id}/messages', { ...runAt(id), body: { to, text, interrupt: how === 'interrupt' } })),
    how === 'interrupt' ? `${to}'s turn is cut. Its next one begins with your message.` : `${to} reads it in its next turn.`,
    (sent) => ({ title: 'Show its receipt', to: { run: id, view: 'conversation', message: sent.id } }),
  );

export const answerQuestion = (id: string, to: string, question: string, text: string) =>
  attempt(unwrap(client.POST('/api/v1/runs/{id}/messages', { ...runAt(id), body: { to, text, inReplyTo: question } })), `${to} gets your answer in its next turn.`);

export const answerApproval = (run: string, approval: string, ok: boolean, more: { reason?: string; edit?: never } = {}) =>
  attempt(unwrap(client.POST('/api/v1/approvals/{approval}', { params: { path: { approval } }, body: { ok, run, ...more } })), ok ? 'Approved.' : 'Denied.');

/** shown shows the run that a dialog has begun. It returns why there is none, which the dialog shows itself. */
async function shown(begun: Promise<{ run: string }>, done: string): Promise<Refusal | undefined> {
  try {
    go({ run: (await begun).run });
    tell(done);
    return undefined;
  } catch (problem) {
    return problem instanceof Refusal ? problem : new Refusal(0, String(problem));
  }
}

/** begin starts a run and shows it. */
export const begin = (wanted: Wanted): Promise<Refusal | undefined> => shown(unwrap(client.POST('/api/v1/runs', { body: wanted })), 'The run has begun.');

/** exportOf is where the run's file is, and what it is called. */
export const exportOf = (id: string, format: 'html' | 'json') => ({ href: `/api/v1/runs/${encodeURIComponent(id)}/export?format=${format}`, download: `${id}.${format}` });

/** exportRun saves a run as one file. */
export const exportRun = (id: string, format: 'html' | 'json') => Object.assign(document.createElement('a'), exportOf(id, format)).click();

export const retryRun = (id: string, from?: string) =>
  attempt(
    unwrap(client.POST('/api/v1/runs/{id}/retry', { ...runAt(id), body: { from } })).then((begun) => begun.run !== id && go({ run: begun.run })),
    from ? `${from} runs again, and all that depends on it.` : 'What failed is tried again.',
  );

/** forkRun starts a run that begins where a turn began, and shows it. The edit is the turn's prompt, or the text of a message. */
export const forkRun = (id: string, at: string, edit?: string, message?: string) =>
  shown(unwrap(client.POST('/api/v1/runs/{id}/fork', { ...runAt(id), body: { at, edit, message } })), `A new run goes on from ${at}.`);
