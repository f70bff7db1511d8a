import type { Delta } from '../api/types';
import { Store } from './store';

/** A Piece is what a running turn said or did: neighbouring deltas of one kind are one piece. */
export interface Piece {
  kind: string;
  text: string;
}

/** Pieces of running turns, by turn. This is the only thing that the page folds itself. */
export const speech = new Store<{ turns: Record<string, Piece[]> }>({ turns: {} });

/** How much of a running turn is kept in memory: its newest part. The whole output comes with the turn's end. */
const mostChars = 200_000;

let pending: Delta[] = [];
let scheduled = false;
let heard = new Set<string>(); // turns that have said something

/** hear takes a delta, and returns whether it is the first of its turn. Deltas are folded together, however many come. */
export function hear(delta: Delta): boolean {
  const first = Boolean(delta.turn) && !heard.has(delta.turn ?? '');
  if (first) heard.add(delta.turn ?? '');
  pending.push(delta);
  if (!scheduled) setTimeout(fold, 30);
  scheduled = true;
  return first;
}

function fold(): void {
  scheduled = false;
  const turns = { ...speech.get().turns };
  for (const delta of pending) {
    if (!delta.turn) continue;
    const pieces = [...(turns[delta.turn] ?? [])];
    const last = pieces.at(-1);
    const text = delta.text ?? (delta.gap ? `… ${delta.gap} bytes are missing here …` : '');
    const joins = last?.kind === delta.kind && (delta.kind === 'text' || delta.kind === 'thinking' || delta.kind === 'stderr');
    if (joins && last) pieces[pieces.length - 1] = { kind: last.kind, text: trim(last.text + text) };
    else pieces.push({ kind: delta.kind, text: trim(text) });
    turns[delta.turn] = pieces.slice(-500);
  }
  pending = [];
  speech.set({ turns });
}

const trim = (text: string) => (text.length > mostChars * 1.5 ? text.slice(-mostChars) : text);

/** noteEnd drops the deltas of a turn that has ended: the server has its output now. */
export function noteEnd(turn: string): void {
  if (!heard.delete(turn)) return;
  pending = pending.filter((delta) => delta.turn !== turn);
  const { [turn]: _, ...turns } = speech.get().turns;
  speech.set({ turns });
}

export function forgetSpeech(): void {
  pending = [];
  heard = new Set();
  speech.set({ turns: {} });
}
