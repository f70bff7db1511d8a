import type { Report } from '../api/types';
import { ms } from '../lib/format';
import { useNow } from '../lib/now';
import { exported } from '../lib/route';
import { isLeft } from '../lib/status';
import { runStore } from './run';
import { useStore } from './store';

/** useMoment returns the time up to which a run is shown: now while a process drives it, else the time of its last event. */
export function useMoment({ run }: Report, every = 1000): number {
  const past = useStore(runStore, (s) => s.at !== undefined);
  const stands = Boolean(run.ended) || past || exported || isLeft(run.status);
  const now = useNow(stands ? 60_000 : every);
  return (stands && ms(run.ended ?? run.time)) || now;
}
