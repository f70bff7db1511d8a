import type { Wanted } from '../api/types';
import { statusOf } from '../lib/doing';
import { exported, go, routeNow, select, views } from '../lib/route';
import { canRetry, isOver } from '../lib/status';
import { nextTheme } from '../lib/theme';
import { actOnAgent, answerApproval, answerQuestion, begin, cancelRun, closeRun, exportRun, pauseRun, resumeRun, retryRun, sendMessage, type AgentAction } from '../store/actions';
import { features } from '../store/features';
import { nextNeed } from '../store/needs';
import { runsStore } from '../store/runs';
import { runStore } from '../store/run';
import { tell, ui } from '../store/ui';
import { editable, questionsOf } from './Needs';
import { agentOf } from './steps';

/** An Entry of the palette. If it asks for a text, the palette takes one line before it runs the entry. */
export interface Entry {
  id: string;
  group: string;
  title: string;
  note?: string;
  asks?: string;
  run: (text: string) => void;
}

const mostAgents = 200;

/** commandsOf lists what can be done now, the most urgent first. */
export function commandsOf(): Entry[] {
  const { report, at } = runStore.get();
  if (!report || !routeNow().run) return [...general(), ...runs()];
  // Nobody steps into the past.
  const back: Entry = { id: 'now', group: 'This run', title: 'Back to now', run: () => go({ ...routeNow(), at: undefined }) };
  const steps = at !== undefined ? [back] : exported ? [] : [...needs(), ...ofAgent(), ...ofRun()];
  return [...steps, ...general(), ...ofViews(), ...agents(), ...runs()];
}

function runs(): Entry[] {
  if (exported) return [];
  return runsStore
    .get()
    .runs.slice(0, 100)
    .map((run) => ({ id: `run ${run.id}`, group: 'Runs', title: run.name || run.id, note: `${run.status} · ${run.id}`, run: () => go({ run: run.id }) }));
}

function general(): Entry[] {
  if (exported) return [{ id: 'theme', group: 'Page', title: 'Change colours', run: nextTheme }];
  const start = (id: string, title: string, asks: string, wanted: (text: string) => Wanted): Entry => ({ id, group: 'Page', title, asks, run: (text) => void begin(wanted(text)).then((refused) => refused && tell(refused.message, refused.hint, true)) });
  return [
    { id: 'next', group: 'Page', title: 'Next thing that needs me', note: 'n', run: nextNeed },
    { id: 'start', group: 'Page', title: 'Start a run', run: () => ui.set({ dialog: { kind: 'start' } }) },
    start('goal', 'Start a team', 'Goal of the team', (goal) => ({ goal })),
    start('query', 'Ask a swarm', 'Query that a swarm answers', (query) => ({ query })),
    start('line', 'Run a line', 'Line, as in the REPL', (line) => ({ line })),
    { id: 'list', group: 'Page', title: 'All runs', run: () => go({}) },
    { id: 'theme', group: 'Page', title: 'Change colours', run: nextTheme },
    { id: 'keys', group: 'Page', title: 'Show keys', note: '?', run: () => ui.set({ dialog: { kind: 'help' } }) },
  ];
}

/** needs answers what agents ask: approvals, and questions to the person. */
function needs(): Entry[] {
  const { report } = runStore.get();
  if (!report) return [];
  const run = report.run.id;
  const entry = (id: string, title: string, act: (text: string) => void, asks?: string): Entry => ({ id, group: 'Needs you', title, asks, run: act });
  const approvals = (report.run.approvals ?? []).filter((one) => !one.auto);
  return [
    ...approvals.flatMap((one) => [
      entry(`approve ${one.id}`, `Approve: ${one.agent} wants to ${one.text}`, () => void answerApproval(run, one.id, true)),
      entry(`deny ${one.id}`, `Deny: ${one.agent} wants to ${one.text}`, (reason) => void answerApproval(run, one.id, false, { reason }), 'Why not? The agent is told'),
      ...(editable(one, report) === undefined ? [] : [entry(`edit ${one.id}`, `Edit: ${one.agent} wants to ${one.text}`, () => ui.set({ edits: one.id }))]),
    ]),
    ...questionsOf(report).map((one) => entry(`answer ${one.id}`, `Answer ${one.agent}: ${one.text}`, (text) => void answerQuestion(run, one.agent, one.id, text), `Your answer to ${one.agent}`)),
  ];
}

function ofRun(): Entry[] {
  const { report } = runStore.get();
  if (!report) return [];
  const { id, status, kind } = report.run;
  const entry = (name: string, title: string, run: () => void): Entry => ({ id: name, group: 'This run', title, run });
  const keep = features.get().export ? [entry('html', 'Export the run as one HTML file', () => exportRun(id, 'html')), entry('json', 'Export the run as JSON', () => exportRun(id, 'json'))] : [];
  if (isOver(status)) {
    const task = kind === 'pipeline' && routeNow().turn?.split('/').slice(0, -2).join('/');
    return [
      ...(canRetry(status, kind) ? [entry('retry', 'Retry what failed, in a new run', () => void retryRun(id))] : []),
      ...(task ? [entry('again', `Run ${task} again, in a new run`, () => void retryRun(id, task))] : []),
      ...keep,
    ];
  }
  const paused = status === 'paused' || status === 'pausing' || status === 'interrupted';
  return [
    paused ? entry('resume', 'Resume the run', () => void resumeRun(id)) : entry('pause', 'Pause the run', () => void pauseRun(id)),
    ...(kind === 'team' ? [entry('close', 'Close the team after its running turns', () => void closeRun(id))] : []),
    entry('cancel', 'Stop the run for good', () => void cancelRun(id)),
    ...keep,
  ];
}

function ofAgent(): Entry[] {
  const agent = agentOf(routeNow());
  const { id, report } = runStore.get();
  if (!agent || !id || !report) return [];
  if (isOver(report.run.status)) return forks();
  const group = `Agent ${agent}`;
  const act = (action: AgentAction, title: string): Entry => ({ id: `${action} ${agent}`, group, title: `${title} ${agent}`, run: () => void actOnAgent(id, agent, action) });
  const say = (how: 'queue' | 'interrupt', title: string): Entry => ({ id: `${how} ${agent}`, group, title, asks: `Message to ${agent}`, run: (text) => void sendMessage(id, agent, text, how) });
  return [
    say('queue', `Write to ${agent}, for its next turn`),
    say('interrupt', `Interrupt ${agent} with a message`),
    act('pause', 'Pause'),
    act('resume', 'Resume'),
    act('reset', 'Reset'),
    act('stop', 'Stop'),
    act('start', 'Start'),
    ...forks(),
  ];
}

/** forks offers a new run that begins with the selected turn, or the newest one of the selected agent. An ended run can be forked, too. */
function forks(): Entry[] {
  const agent = agentOf(routeNow());
  const turn = routeNow().turn ?? runStore.get().report?.turns.findLast((one) => one.agent === agent)?.id;
  if (!turn || runStore.get().report?.run.kind === 'line' || !features.get().fork) return [];
  return [{ id: `fork ${turn}`, group: 'This run', title: `Fork the run from ${turn}`, run: () => ui.set({ dialog: { kind: 'fork', turn } }) }];
}

const ofViews = (): Entry[] => views.map((view, index) => ({ id: `view ${view}`, group: 'Views', title: `Show the ${view}`, note: String(index + 1), run: () => go({ ...routeNow(), view }) }));

function agents(): Entry[] {
  const { report, agents } = runStore.get();
  if (!report) return [];
  return agents.slice(0, mostAgents).map((agent) => ({ id: `agent ${agent.name}`, group: 'Agents', title: agent.name, note: statusOf(report, agent), run: () => select({ agent: agent.name }) }));
}
