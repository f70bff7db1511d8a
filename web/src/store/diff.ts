import { client, Refusal, unwrap } from '../api/client';
import { exportedRun } from './exported';
import type { Diff } from '../api/types';

export type { Diff };

/** loadDiff returns what a turn changed, or a whole run. An exported page has the diff of the run only; artifacts have those of turns. */
export async function loadDiff(run: string, turn: string | undefined, signal?: AbortSignal): Promise<Diff> {
  const past = exportedRun();
  if (past) {
    if (past.diff && !turn) return past.diff;
    if (turn) throw new Refusal(404, 'this file has the changes of the whole run: Review shows them');
    throw new Refusal(404, 'this file has no changes of files');
  }
  return unwrap(client.GET('/api/v1/runs/{id}/diff', { params: { path: { id: run }, query: { turn } }, signal }));
}
