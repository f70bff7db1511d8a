import { Refusal } from '../api/client';
import { Store } from './store';

export interface Toast {
  id: number;
  text: string;
  hint?: string;
  bad?: boolean;
}

export type Dialog = { kind: 'start' } | { kind: 'help' } | { kind: 'fork'; turn: string };

interface UI {
  palette: boolean;
  dialog?: Dialog;
  toasts: Toast[];
}

export const ui = new Store<UI>({ palette: false, toasts: [] });

let number = 0;

/** tell shows a sentence for some seconds. A refusal stays longer, because it says what to do. */
export function tell(text: string, hint?: string, bad = false): void {
  const toast = { id: ++number, text, hint, bad };
  ui.set({ toasts: [...ui.get().toasts.slice(-3), toast] });
  setTimeout(() => dismiss(toast.id), bad ? 12_000 : 5_000);
}

export const dismiss = (id: number) => ui.set({ toasts: ui.get().toasts.filter((one) => one.id !== id) });

/** attempt does something for the person and tells them what came of it. It returns whether it worked. */
export async function attempt<T>(asked: Promise<T>, done?: string | ((result: T) => string)): Promise<boolean> {
  try {
    const result = await asked;
    if (done) tell(typeof done === 'string' ? done : done(result));
    return true;
  } catch (problem) {
    if (problem instanceof Refusal) tell(problem.message, problem.hint, true);
    else tell(String(problem), undefined, true);
    return false;
  }
}
