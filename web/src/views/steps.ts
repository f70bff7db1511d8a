import { useEffect } from 'react';
import { routeNow, select } from '../lib/route';
import { runStore } from '../store/run';

/** useSteps moves the selection by keys: j and k between agents, [ and ] between turns of one agent. */
export function useSteps(): void {
  useEffect(() => {
    const step = (event: Event) => {
      const key = (event as CustomEvent<string>).detail;
      if (key === 'j' || key === 'k') stepAgent(key === 'j' ? 1 : -1);
      else stepTurn(key === ']' ? 1 : -1);
    };
    window.addEventListener('swarm:step', step);
    return () => window.removeEventListener('swarm:step', step);
  }, []);
}

/** agentOf returns the agent that is selected, directly or by one of its turns. */
export function agentOf(route: { agent?: string; turn?: string; message?: string }): string | undefined {
  if (route.agent) return route.agent;
  const { report } = runStore.get();
  if (route.turn) {
    const task = route.turn.split('/').slice(0, -2).join('/');
    return report?.turns.find((turn) => turn.id === route.turn)?.agent ?? report?.tasks.find((one) => one.name === task)?.agent ?? task;
  }
  if (route.message) return report?.envelopes.find((one) => one.id === route.message)?.toNodeId;
  return undefined;
}

function stepAgent(by: number): void {
  const names = runStore.get().agents.map((agent) => agent.name);
  const now = agentOf(routeNow());
  const at = now ? names.indexOf(now) : by > 0 ? -1 : 0;
  const agent = names[(at + by + names.length) % names.length];
  if (agent) select({ agent });
}

function stepTurn(by: number): void {
  const route = routeNow();
  const agent = agentOf(route);
  const turns = (runStore.get().report?.turns ?? []).filter((turn) => turn.agent === agent);
  if (turns.length === 0) return;
  const at = route.turn ? turns.findIndex((turn) => turn.id === route.turn) : turns.length - 1;
  const turn = turns[Math.max(0, Math.min(turns.length - 1, at + by))];
  if (turn) select({ turn: turn.id });
}
