import { client, unwrap, type Refusal } from '../api/client';
import { follow, type Connection } from '../api/sse';
import type { Summary } from '../api/types';
import { isLeft, isOver } from '../lib/status';
import { noticeRefusal } from './session';
import { Store } from './store';

export interface RunsState {
  runs: Summary[];
  next?: string;
  query: string;
  loaded: boolean;
  connection: Connection;
  problem?: Refusal;
}

export const runsStore = new Store<RunsState>({ runs: [], query: '', loaded: false, connection: 'connecting' });

let asked = 0;

/** search lists the runs that have all words of a query; without a query, all runs. */
export async function search(query: string): Promise<void> {
  const mine = ++asked;
  runsStore.set({ query });
  try {
    const list = await unwrap(client.GET('/api/v1/runs', { params: { query: { q: query || undefined } } }));
    if (mine === asked) runsStore.set({ runs: list.runs, next: list.next, loaded: true, problem: undefined });
  } catch (problem) {
    noticeRefusal(problem);
    if (mine === asked) runsStore.set({ problem: problem as Refusal, loaded: true });
  }
}

/** loadOlder appends the next page. */
export async function loadOlder(): Promise<void> {
  const { next, query, runs } = runsStore.get();
  if (!next) return;
  const list = await unwrap(client.GET('/api/v1/runs', { params: { query: { q: query || undefined, before: next } } }));
  runsStore.set({ runs: [...runs, ...list.runs], next: list.next });
}

/** watchRuns keeps the list as the server says it. A summary replaces the one of the same run. */
export function watchRuns(): () => void {
  const stop = new AbortController();
  void follow(
    '/api/v1/stream/sse',
    undefined,
    {
      // What changed while there was no connection is in the list.
      opened: () => void search(runsStore.get().query),
      frames: (frames) => {
        let runs = runsStore.get().runs;
        for (const frame of frames) {
          if (frame.event === 'summary') runs = put(runs, JSON.parse(frame.data) as Summary);
          if (frame.event === 'removed') runs = runs.filter((run) => run.id !== (JSON.parse(frame.data) as Summary).id);
        }
        runsStore.set({ runs });
      },
      connection: (connection, problem) => {
        noticeRefusal(problem);
        runsStore.set({ connection });
      },
    },
    stop.signal,
  );
  return () => stop.abort();
}

/** put replaces a run of the list. A run that is new goes to its top, unless the list shows what a search found. */
function put(runs: Summary[], changed: Summary): Summary[] {
  const at = runs.findIndex((run) => run.id === changed.id);
  if (at >= 0) return runs.with(at, changed);
  return runsStore.get().query ? runs : [changed, ...runs];
}

export interface Need {
  kind: string;
  text: string;
  id?: string;
  agent?: string;
}

export const needsOf = (run: Summary): Need[] => run.needs ?? [];

/** groups orders runs as a person wants them: what waits for them first, then what runs, then what was left, then the rest. */
export function groups(runs: Summary[]): { title: string; runs: Summary[] }[] {
  const needy = runs.filter((run) => needsOf(run).length > 0);
  const others = runs.filter((run) => needsOf(run).length === 0);
  return [
    { title: 'Needs you', runs: needy },
    { title: 'Running', runs: others.filter((run) => !isOver(run.status) && !isLeft(run.status)) },
    { title: 'Interrupted', runs: others.filter((run) => isLeft(run.status)) },
    { title: 'Ended', runs: others.filter((run) => isOver(run.status)) },
  ].filter((group) => group.runs.length > 0);
}
