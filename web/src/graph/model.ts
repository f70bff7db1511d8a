import type { Agent, Report, Task } from '../api/types';
import { asksNow, statusOf } from '../lib/doing';

/** A Card is one node of the graph: an agent of a team or swarm, or a task of a pipeline with its agent. */
export interface Card {
  id: string;
  title: string;
  agent: string;
  sub: string;
  status: string;
  asks: boolean; // its turn waits for a person
  live?: Agent;
  task?: Task;
}

export interface Arrow {
  id: string;
  from: string;
  to: string;
  both: boolean;
  label?: string;
  handoffs: number;
}

/** isPipeline is whether a run's graph shows tasks and what they depend on, instead of agents and who may write to whom. */
export const isPipeline = (report: Report): boolean => report.run.kind === 'pipeline' || report.run.kind === 'line';

/** cards returns the nodes of the graph, in the server's order. */
export function cards(report: Report, agents: Agent[]): Card[] {
  // No card shows the last activity, which changes with every word.
  const quiet = agents.map((agent) => ({ ...agent, last_activity: undefined }));
  const live = new Map(quiet.map((agent) => [agent.name, agent]));
  const model = (agent?: Agent) => [agent?.provider, agent?.model].filter(Boolean).join(' · ');
  if (isPipeline(report)) {
    return report.tasks.map((task) => {
      const agent = live.get(task.agent);
      const busy = agent?.task === task.name || agent?.turn?.startsWith(`${task.name}/`);
      const asks = Boolean(busy) && asksNow(report, agent);
      const status = busy && agent ? statusOf(report, agent) : task.status;
      const sub = task.agent === task.name ? model(agent) : `${task.agent} · ${model(agent)}`;
      return { id: task.name, title: task.name, agent: task.agent, sub, status, asks, live: busy ? agent : agent && { ...agent, stream: undefined }, task };
    });
  }
  const tasks = new Map(report.tasks.map((task) => [task.agent, task]));
  return quiet.map((agent) => ({ id: agent.name, title: agent.name, agent: agent.name, sub: model(agent), status: statusOf(report, agent), asks: asksNow(report, agent), live: agent, task: tasks.get(agent.name) }));
}

/** Conditions of dependencies, in words. The ordinary ones have none: a task of a file waits for an end, and one of a line for success. */
const conditions: Record<string, string | undefined> = { success: 'if it completes', failure: 'if it fails', always: 'however it ends' };

/** arrows returns the edges of the graph: dependencies of a pipeline, or allowed paths and the way that mail took. */
export function arrows(report: Report): Arrow[] {
  const found = new Map<string, Arrow>();
  const add = (from: string, to: string, more: Partial<Arrow> = {}) => {
    const id = `${from} ${to}`;
    const other = found.get(`${to} ${from}`);
    if (other) {
      other.both = true;
      other.handoffs += more.handoffs ?? 0;
      return;
    }
    if (!found.has(id)) found.set(id, { id, from, to, both: false, handoffs: 0, ...more });
  };
  if (isPipeline(report)) {
    for (const task of report.tasks) for (const needed of task.depends_on ?? []) add(needed.task, task.name, { label: conditions[needed.condition] });
    return [...found.values()];
  }
  for (const edge of report.edges) add(edge.from, edge.to, { both: edge.both ?? false, handoffs: edge.handoffs });
  const names = new Set(report.agents.map((agent) => agent.name));
  if (report.run.kind === 'swarm') {
    const byId = new Map(report.tasks.map((task) => [task.subtask?.id, task.agent]));
    for (const task of report.tasks) {
      for (const id of task.subtask?.depends_on ?? []) add(byId.get(id) ?? id, task.agent);
      if (task.subtask?.depends_on?.length) continue;
      const parent = task.subtask?.for ?? (task.agent === 'supervisor' ? undefined : 'supervisor');
      if (parent && names.has(parent) && task.agent !== parent) add(parent, task.agent);
    }
  }
  return [...found.values()];
}
