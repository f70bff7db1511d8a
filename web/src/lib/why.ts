import type { Wait } from '../api/types';

/** whyOf says in words what an agent or task waits for. The words are those of `swarm why`. */
export function whyOf(waits?: Wait[]): string | undefined {
  const wait = waits?.[0];
  if (!wait) return undefined;
  return sentence(wait) + (waits.length > 1 ? `, and ${waits.length - 1} more` : '');
}

export function sentence(wait: Wait): string {
  const who = wait.agent ?? wait.task ?? '';
  switch (wait.for) {
    case 'dependency':
      return `waits for ${wait.task} to end`;
    case 'agent':
      return `waits for ${who}, busy with ${wait.task ?? 'another task'}`;
    case 'concurrency':
      return 'waits for a place among its copies';
    case 'output':
      return `waits for the first output of ${who}`;
    case 'slot':
      return 'waits for one of the turns that may run at once';
    case 'room':
      return 'waits for room in the budget';
    case 'retry':
      return 'waits for the next attempt';
    case 'limit':
      return `waits for the limit of ${wait.provider ?? 'its provider'} to reset`;
    case 'person':
      // The terminal's command stands at the end. The page has buttons for it.
      return wait.reason ? `waits for you: ${wait.reason.replace(/ swarm approve \S+$/, '')}` : 'waits for you';
    case 'pause':
      return 'is paused';
    case 'mail':
      return 'waits for mail';
    case 'wait_for':
      return `waits for ${who} to be through`;
    case 'reply':
      return `waits for ${who} to answer`;
    case 'worker':
      return 'waits for the worker at its desk';
    default:
      return wait.reason ?? 'waits';
  }
}
