import createClient from 'openapi-fetch';
import type { paths } from './schema';

/**
 * client speaks to the server that the page came from. The browser sends the session's cookie. The server takes only JSON, and
 * wants that said of requests without a body too.
 */
export const client = createClient<paths>({ baseUrl: location.origin === 'null' ? '/' : location.origin, headers: { 'Content-Type': 'application/json' }, fetch: patiently });

/** How long the page waits for the whole answer to a reading. The lists of the longest runs take less. */
const patience = 60_000;

/** patiently asks the server. A reading on a dead connection has no answer for many minutes, so it is given up before. */
async function patiently(request: Request): Promise<Response> {
  if (request.method !== 'GET') return fetch(request);
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), patience);
  try {
    const answer = await fetch(request, { signal: AbortSignal.any([request.signal, limit.signal]) });
    const body = await answer.arrayBuffer();
    return new Response(body.byteLength > 0 ? body : null, answer);
  } finally {
    clearTimeout(timer);
  }
}

/** A Refusal is an error that the server explains: what is wrong, and what to do instead. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint?: string,
  ) {
    super(message);
  }

  /** passes is whether the same request may be answered later: the server cannot be reached, or is in trouble. */
  get passes(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** unwrap returns the data of an answer, or throws the server's refusal. */
export async function unwrap<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch {
    throw new Refusal(0, 'the server does not answer', 'is `swarm serve` still running?');
  }
  if (!answer.response.ok) throw refusalOf(answer.response.status, answer.error);
  return answer.data as T;
}

export function refusalOf(status: number, body: unknown): Refusal {
  const problem = (typeof body === 'object' && body !== null ? body : {}) as { error?: string; hint?: string };
  return new Refusal(status, problem.error ?? `the server answered ${status}`, problem.hint);
}

/** login exchanges the one-time code of a printed address for the session's cookie. */
export async function login(code: string): Promise<void> {
  const answer = await fetch('/api/v1/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ code }),
  }).catch(() => {
    throw new Refusal(0, 'the server does not answer', 'is `swarm serve` still running?');
  });
  if (!answer.ok) throw refusalOf(answer.status, await answer.json().catch(() => null));
}
