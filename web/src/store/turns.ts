import { useEffect, useState } from 'react';
import { client, Refusal, unwrap } from '../api/client';
import type { FullTurn } from '../api/types';
import { exportedRun } from './exported';

/** loadTurn reads a turn with its texts. */
export async function loadTurn(run: string, turn: string, signal?: AbortSignal): Promise<FullTurn> {
  const past = exportedRun();
  if (past) {
    const found = past.turns[turn];
    if (found) return found;
    throw new Refusal(404, `this file has no turn ${turn}`);
  }
  return unwrap(client.GET('/api/v1/runs/{id}/turns/{turn}', { params: { path: { id: run, turn } }, signal }));
}

export interface Loaded<T> {
  value?: T;
  problem?: Refusal;
}

/** useTurn reads a turn, and reads it again when its status changes. The old texts stay until the new ones are there. */
export function useTurn(run: string, turn: string | undefined, status: string | undefined): Loaded<FullTurn> {
  return useLoaded(turn ? `${run} ${turn} ${status}` : undefined, (signal) => loadTurn(run, turn ?? '', signal), turn);
}

/** useLoaded reads something when its key changes. A change of what it belongs to forgets the old value at once. */
export function useLoaded<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>, of?: string): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { of?: string }>({});
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (!key) return setLoaded({});
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    load(stop.signal).then(
      (value) => !stop.signal.aborted && setLoaded({ value, of }),
      (problem: Refusal) => {
        if (stop.signal.aborted) return;
        setLoaded({ problem, of });
        if (problem.passes) timer = setTimeout(() => setTries(tries + 1), 2000);
      },
    );
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
    // The key says when to read again.
  }, [key, tries]);
  return loaded.of === of ? loaded : {};
}
