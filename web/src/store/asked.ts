import { client, unwrap } from '../api/client';
import type { Report } from '../api/types';
import { ms } from '../lib/format';
import { exported } from '../lib/route';
import { useLoaded } from './turns';

/** A Pause is a part of a turn in which it waited for a person to allow something. Without an end it still waits. */
export interface Pause {
  turn: string;
  what: string;
  from: number;
  to?: number;
}

const mostPages = 10;

/** usePauses returns the pauses of a run's turns. They are read again when something was asked or answered. */
export function usePauses(report?: Report): Pause[] {
  const open = (report?.run.approvals ?? []).map((one) => one.id).join(' ');
  const run = report?.run.id;
  const answered = `${report?.run.actions?.length ?? 0} ${report?.run.status}`;
  const loaded = useLoaded(run && !exported ? `${run} ${open} ${answered}` : undefined, (signal) => readPauses(run ?? '', signal), run);
  return loaded.value ?? none;
}

const none: Pause[] = [];

async function readPauses(id: string, signal: AbortSignal): Promise<Pause[]> {
  const pauses = new Map<string, Pause>();
  let after: number | undefined;
  for (let page = 0; page < mostPages; page++) {
    const list = await unwrap(client.GET('/api/v1/runs/{id}/events', { params: { path: { id }, query: { after, limit: 1000, kind: 'approval_asked,approval_answered' } }, signal }));
    for (const event of list.events) {
      const body = event.data as { id: string; what?: string; wish?: unknown; auto?: boolean };
      const asked = pauses.get(body.id);
      if (event.kind === 'approval_answered' && asked) asked.to = ms(event.time);
      if (event.kind === 'approval_asked' && event.turn && !body.wish && !body.auto) pauses.set(body.id, { turn: event.turn, what: body.what ?? '', from: ms(event.time) });
    }
    if (!list.next) break;
    after = list.next;
  }
  return [...pauses.values()];
}
