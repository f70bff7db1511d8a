import { exported, go, routeNow, select, views } from '../lib/route';
import { canRetry, isOver } from '../lib/status';
import { nextTheme } from '../lib/theme';
import { actOnAgent, answerApproval, cancelRun, closeRun, pauseRun, resumeRun, retryRun, sendMessage, type AgentAction } from '../store/actions';
import { features } from '../store/features';
import { nextNeed } from '../store/needs';
import { runsStore } from '../store/runs';
import { runStore } from '../store/run';
import { ui } from '../store/ui';
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
  const entries = [...approvals(), ...general()];
  if (runStore.get().report && routeNow().run) entries.push(...ofAgent(), ...ofRun(), ...ofViews(), ...agents());
  if (!exported) {
    for (const run of runsStore.get().runs.slice(0, 100)) {
      entries.push({ id: `run ${run.id}`, group: 'Runs', title: run.name || run.id, note: `${run.status} · ${run.id}`, run: () => go({ run: run.id }) });
    }
  }
  return entries;
}

function general(): Entry[] {
  if (exported) return [{ id: 'theme', group: 'Page', title: 'Change colours', run: nextTheme }];
  return [
    { id: 'next', group: 'Page', title: 'Next thing that needs me', note: 'n', run: nextNeed },
    { id: 'start', group: 'Page', title: 'Start a run', run: () => ui.set({ dialog: { kind: 'start' } }) },
    { id: 'list', group: 'Page', title: 'All runs', run: () => go({}) },
    { id: 'theme', group: 'Page', title: 'Change colours', run: nextTheme },
    { id: 'keys', group: 'Page', title: 'Show keys', note: '?', run: () => ui.set({ dialog: { kind: 'help' } }) },
  ];
}

function approvals(): Entry[] {
  const { report } = runStore.get();
  if (!report || !routeNow().run) return [];
  return (report.run.approvals ?? []).flatMap((one): Entry[] => [
    { id: `approve ${one.id}`, group: 'Needs you', title: `Approve: ${one.agent} wants to ${one.what}`, run: () => void answerApproval(report.run.id, one.id, true) },
    { id: `deny ${one.id}`, group: 'Needs you', title: `Deny: ${one.agent} wants to ${one.what}`, asks: 'Why not? The agent is told', run: (reason) => void answerApproval(report.run.id, one.id, false, { reason }) },
  ]);
}

function ofRun(): Entry[] {
  const { report } = runStore.get();
  if (!report || exported) return [];
  const { id, status, kind } = report.run;
  const entry = (name: string, title: string, run: () => void): Entry => ({ id: name, group: 'This run', title, run });
  if (isOver(status)) return canRetry(status, kind) ? [entry('retry', 'Retry what failed, in a new run', () => void retryRun(id))] : [];
  const paused = status === 'paused' || status === 'pausing' || status === 'interrupted';
  return [
    paused ? entry('resume', 'Resume the run', () => void resumeRun(id)) : entry('pause', 'Pause the run', () => void pauseRun(id)),
    ...(kind === 'team' ? [entry('close', 'Close the team after its running turns', () => void closeRun(id))] : []),
    entry('cancel', 'Stop the run for good', () => void cancelRun(id)),
  ];
}

function ofAgent(): Entry[] {
  const agent = agentOf(routeNow());
  const { id, report } = runStore.get();
  if (!agent || !id || exported || !report) return [];
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

/** forks offers a new run that begins with the selected turn. An ended run can be forked, too. */
function forks(): Entry[] {
  const { turn } = routeNow();
  if (!turn || runStore.get().report?.run.kind === 'line' || !features.get().fork) return [];
  return [{ id: `fork ${turn}`, group: 'This run', title: `Fork the run from ${turn}`, run: () => ui.set({ dialog: { kind: 'fork', turn } }) }];
}

const ofViews = (): Entry[] => views.map((view, index) => ({ id: `view ${view}`, group: 'Views', title: `Show the ${view}`, note: String(index + 1), run: () => go({ ...routeNow(), view }) }));

const agents = (): Entry[] =>
  runStore
    .get()
    .agents.slice(0, mostAgents)
    .map((agent) => ({ id: `agent ${agent.name}`, group: 'Agents', title: agent.name, note: agent.status, run: () => select({ agent: agent.name }) }));
