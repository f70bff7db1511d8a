import type { Usage } from '../api/types';

/** Texts of agents are shown as characters: control characters and marks that turn text around become visible. */
export function visible(text: string): string {
  return text
    .replace(/\x1b\[[0-9;:?]*[ -/]*[@-~]/g, '')
    .replace(/\r\n/g, '\n')
    .replace(/[\x00-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => `⟨${c.charCodeAt(0).toString(16)}⟩`);
}

/** excerpt returns the beginning of a text on one line. */
export function excerpt(text: string, most = 160): string {
  const line = visible(text.slice(0, most * 4)).replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} kB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}

export function count(n: number): string {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

export const tokens = (usage?: Usage): number => (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);

/** cost says what was used: money where it is known, else tokens, else turns: the server counts one call for each. */
export function cost(usage?: Usage): string {
  if (!usage) return '';
  const about = usage.estimated ? '~' : '';
  if (usage.usd) return `${about}$${usage.usd < 0.1 ? usage.usd.toFixed(4) : usage.usd.toFixed(2)}`;
  if (tokens(usage) > 0) return `${about}${count(tokens(usage))} tokens`;
  return usage.calls ? `${usage.calls} ${usage.calls === 1 ? 'turn' : 'turns'}` : '';
}

export function duration(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.round((s % 86400) / 3600)} h`;
}

export const ms = (time?: string): number => (time ? Date.parse(time) : NaN);

/** Times are shown in the reader's time zone and language. */
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** clockTo returns a function that writes a time of the day with the parts of a second that a step of this many milliseconds needs. */
export function clockTo(step: number): (time: number) => string {
  if (step >= 1000) return clockOf;
  const digits = step >= 100 ? 1 : step >= 10 ? 2 : 3;
  const fine = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: digits });
  return (time) => fine.format(new Date(time));
}

export const clockOf = (time?: string | number): string => (time === undefined || time === '' ? '' : clock.format(new Date(time)));
export const dayOf = (time?: string): string => (time ? day.format(new Date(time)) : '');

export function ago(time: string | undefined, now: number): string {
  if (!time) return '';
  const past = now - ms(time);
  if (past < 5000) return 'just now';
  if (past < 86400e3 * 2) return `${duration(past < 60e3 ? past : Math.floor(past / 60e3) * 60e3).replace(/ 0 (s|min)$/, '')} ago`;
  return dayOf(time);
}
