import type { Receipt } from '../api/types';

/** How a status looks: the sign and the tone that the terminal has too (internal/term/signs.go). */
export type Tone = 'active' | 'wait' | 'good' | 'bad' | 'dim';

const looks: Record<string, [string, Tone]> = {
  running: ['●', 'active'],
  streaming: ['◉', 'active'],
  waiting: ['◌', 'wait'],
  blocked: ['?', 'wait'],
  pausing: ['‖', 'wait'],
  paused: ['‖', 'wait'],
  interrupted: ['‖', 'wait'],
  completed: ['✓', 'good'],
  failed: ['✗', 'bad'],
  skipped: ['⊘', 'dim'],
  cancelled: ['⊘', 'dim'],
  pending: ['·', 'dim'],
  idle: ['·', 'dim'],
};

export const signOf = (status?: string): string => looks[status ?? '']?.[0] ?? '·';
export const toneOf = (status?: string): Tone => looks[status ?? '']?.[1] ?? 'dim';
export const isOver = (status?: string): boolean => status === 'completed' || status === 'failed' || status === 'cancelled';

/** isLeft is whether no process drives a run that has not ended: its clock stands still until it is resumed. */
export const isLeft = (status?: string): boolean => status === 'interrupted';

/** canRetry is whether an ended run can be tried again: something did not work, and it is no line, which is typed again instead. */
export const canRetry = (status: string, kind?: string): boolean => isOver(status) && status !== 'completed' && kind !== 'line';

/** A receipt says how far a message got. */
export const receiptSigns: Record<string, string> = { stored: '○', injected: '◐', answered: '●', undeliverable: '✗' };
/** editedWords says who changed the text of a message, for a fork. */
export const editedWords = ({ edited }: Receipt): string => `edited${edited?.user ? ` by ${edited.user}` : ''}`;

export const receiptWords: Record<string, string> = {
  stored: 'stored, not read yet',
  injected: 'read in a prompt',
  answered: 'answered',
  undeliverable: 'undeliverable',
};
