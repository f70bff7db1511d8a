import { Refusal } from '../api/client';
import type { Route } from '../lib/route';
import { Store } from './store';

export interface Toast {
  id: number;
  text: string;
  hint?: string;
  bad?: boolean;
  link?: Link;
}

/** A Link leads from a sentence to what it is about. */
export interface Link {
  title: string;
  to: Partial<Route>;
}

/** A fork edits the prompt of its turn, or a message that the turn has read. */
export type Dialog = { kind: 'start' } | { kind: 'help' } | { kind: 'fork'; turn: string; message?: string };

interface UI {
  palette: boolean;
  dialog?: Dialog;
  edits?: string; // the approval that the palette has opened for editing
  toasts: Toast[];
}

export const ui = new Store<UI>({ palette: false, toasts: [] });

let number = 0;

/** tell shows a sentence for some seconds. A refusal stays longer, because it says what to do. */
export function tell(text: string, hint?: string, bad = false, link?: Link): void {
  const toast = { id: ++number, text, hint, bad, link };
  ui.set({ toasts: [...ui.get().toasts.slice(-3), toast] });
  setTimeout(() => dismiss(toast.id), bad ? 12_000 : 5_000);
}

export const dismiss = (id: number) => ui.set({ toasts: ui.get().toasts.filter((one) => one.id !== id) });

/** attempt does something for the person and tells them what came of it. It returns whether it worked. */
export async function attempt<T>(asked: Promise<T>, done: string, link?: (result: T) => Link): Promise<boolean> {
  try {
    const result = await asked;
    tell(done, undefined, false, link?.(result));
    return true;
  } catch (problem) {
    if (problem instanceof Refusal) tell(problem.message, problem.hint, true);
    else tell(String(problem), undefined, true);
    return false;
  }
}
