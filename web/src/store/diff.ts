import { ask, Refusal } from '../api/client';
import { exportedRun } from './exported';
import type { Diff } from '../api/types';

export type { Diff };

/** loadDiff returns what a turn changed, or a whole run. An exported page has the diff of the run only. */
export async function loadDiff(run: string, turn: string | undefined, signal?: AbortSignal): Promise<Diff> {
  const past = exportedRun();
  if (past) {
    if (past.diff) return past.diff;
    throw new Refusal(404, 'this file has no changes of files');
  }
  const query = turn ? `?turn=${encodeURIComponent(turn)}` : '';
  return ask<Diff>('GET', `/api/v1/runs/${encodeURIComponent(run)}/diff${query}`, undefined, signal);
}
