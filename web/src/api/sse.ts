import { Refusal, refusalOf } from './client';

/** A Frame is one Server-Sent Event. */
export interface Frame {
  id?: string;
  event: string;
  data: string;
}

/** A Parser turns the bytes of a stream into frames, wherever the network cuts them. */
export class Parser {
  private rest = '';
  private lines: string[] = [];

  push(text: string): Frame[] {
    const frames: Frame[] = [];
    const parts = (this.rest + text).split('\n');
    this.rest = parts.pop() ?? '';
    for (const part of parts) {
      const line = part.endsWith('\r') ? part.slice(0, -1) : part;
      if (line !== '') {
        this.lines.push(line);
        continue;
      }
      const frame = this.finish();
      if (frame) frames.push(frame);
    }
    return frames;
  }

  private finish(): Frame | undefined {
    const frame: Frame = { event: 'message', data: '' };
    const data: string[] = [];
    for (const line of this.lines) {
      const colon = line.indexOf(':');
      if (colon === 0) continue; // a heartbeat
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'data') data.push(value);
      if (field === 'event') frame.event = value;
      if (field === 'id') frame.id = value;
    }
    this.lines = [];
    frame.data = data.join('\n');
    return data.length > 0 ? frame : undefined;
  }
}

export type Connection = 'connecting' | 'live' | 'lost' | 'ended';

interface Listener {
  opened?: () => void;
  frames: (frames: Frame[]) => void;
  connection: (state: Connection, problem?: Refusal) => void;
}

/** Time between two attempts to connect: short at first, so that a restart of the server is hardly noticed. */
const delays = [200, 500, 1000, 2000, 4000];

/** The server says something at least every 15 seconds. After this time without a word the connection is dead. */
const silence = 40_000;

/**
 * follow reads a stream until it has ended or is aborted. A lost connection is made again with the number of the last
 * event, so nothing is missed and nothing comes twice. fetch is used instead of EventSource because it shows errors.
 */
export async function follow(address: string, last: string | undefined, listener: Listener, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const attempt = new AbortController();
    const ends = AbortSignal.any([signal, attempt.signal]);
    let timer = setTimeout(() => attempt.abort(), silence);
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (last) headers['Last-Event-ID'] = last;
      const answer = await fetch(address, { headers, signal: ends, cache: 'no-store' });
      if (answer.status === 204) return listener.connection('ended');
      if (!answer.ok || !answer.body) {
        const problem = refusalOf(answer.status, await answer.json().catch(() => null));
        if (answer.status < 500) return listener.connection('lost', problem);
        throw problem;
      }
      failures = 0;
      listener.opened?.();
      listener.connection('live');
      const parser = new Parser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        clearTimeout(timer);
        if (done) break;
        timer = setTimeout(() => attempt.abort(), silence);
        const frames = parser.push(value);
        for (const frame of frames) last = frame.id ?? last;
        if (frames.length > 0) listener.frames(frames);
      }
    } catch (problem) {
      if (signal.aborted) return;
      listener.connection('lost', problem instanceof Refusal ? problem : undefined);
    } finally {
      clearTimeout(timer);
      attempt.abort(); // also after an error of the listener, so that no old connection stays open
    }
    await new Promise((resolve) => setTimeout(resolve, delays[Math.min(failures, delays.length - 1)]));
    failures++;
  }
}
