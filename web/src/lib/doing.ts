import type { Agent, Report, Task } from '../api/types';
import { isOver } from './status';

/** asksNow is whether an agent's turn stands still until a person allows what it wants to do. A wish for an agent or an edge lets the turn go on. */
export const asksNow = (report: Report, agent?: Agent): boolean =>
  Boolean(agent?.turn) && (report.run.approvals ?? []).some((one) => one.turn === agent?.turn && !one.auto && !one.wish);

/**
 * statusOf is how an agent is shown: blocked while its turn waits for a person, and after the end of the run as its last
 * task ended. The server says idle of an agent whose tasks have ended, because it gets no turn.
 */
export function statusOf(report: Report, agent?: Agent): string {
  if (asksNow(report, agent)) return 'blocked';
  if (agent?.status !== 'idle' || !isOver(report.run.status)) return agent?.status ?? '';
  const ended = report.tasks.filter((task: Task) => task.agent === agent.name && (isOver(task.status) || task.status === 'skipped'));
  return ended.at(-1)?.status ?? agent.status;
}
