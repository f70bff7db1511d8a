import { login, Refusal } from '../api/client';
import { exported } from '../lib/route';
import { Store } from './store';

/** Whether the page may read: the code of the address is being exchanged, it may, or it may not and why. */
export interface Session {
  state: 'entering' | 'in' | 'out';
  problem?: Refusal;
}

export const session = new Store<Session>({ state: exported ? 'in' : 'entering' });

/** enter exchanges the code behind # for a cookie and takes it out of the address, so that no history keeps it. */
export async function enter(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (exported) return;
  if (!code) return session.set({ state: 'in' });
  history.replaceState(null, '', location.pathname + location.search);
  try {
    await login(code);
    session.set({ state: 'in', problem: undefined });
  } catch (problem) {
    // An older cookie may still count. The first request shows whether it does.
    if (problem instanceof Refusal && problem.status === 401) session.set({ state: 'in' });
    else session.set({ state: 'out', problem: problem as Refusal });
  }
}

// A new address that is put into the same tab changes only what is behind #, and loads nothing.
window.addEventListener('hashchange', () => {
  if (!exported && location.hash.startsWith('#code=')) void enter().then(() => location.reload());
});

/** noticeRefusal shows the way in again when the server no longer knows the cookie. */
export function noticeRefusal(problem: unknown): void {
  if (problem instanceof Refusal && problem.status === 401) session.set({ state: 'out', problem });
}
