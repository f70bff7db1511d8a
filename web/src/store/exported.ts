import type { Agent, FullTurn, Report } from '../api/types';
import type { Diff } from './diff';

/** What `swarm export --html` puts into the page: one run, with everything that the page would ask a server for. */
export interface Exported {
  report: Report;
  nodes: Agent[];
  turns: Record<string, FullTurn>;
  diff?: Diff;
  artifacts?: Record<string, string>;
}

let read: Exported | undefined;

export function exportedRun(): Exported | undefined {
  const element = document.getElementById('swarm-export');
  if (!element) return undefined;
  read ??= JSON.parse(element.textContent ?? 'null') as Exported;
  return read;
}
