import { client, Refusal, unwrap } from '../api/client';
import { follow, type Connection, type Frame } from '../api/sse';
import type { Agent, Delta, LogEvent, Report } from '../api/types';
import { exportedRun } from './exported';
import { noticeRefusal } from './session';
import { forgetSpeech, hear, noteEnd } from './speech';
import { Store } from './store';

/** A Flight is an envelope that was just stored: it is drawn while it travels. */
export interface Flight {
  id: string;
  from: string;
  to: string;
}

export interface RunState {
  id?: string;
  report?: Report;
  agents: Agent[];
  flights: Flight[];
  connection: Connection;
  last: number; // the number of the newest event
  at?: number; // the past moment that is shown
  problem?: Refusal;
}

const empty: RunState = { agents: [], flights: [], connection: 'connecting', last: 0 };
export const runStore = new Store<RunState>(empty);

/** watchRun shows a run, now or after event at, and keeps it as the server says it until the returned function is called. */
export function watchRun(id: string, at?: number): () => void {
  const stop = new AbortController();
  if (runStore.get().id !== id) {
    forgetSpeech();
    runStore.set({ ...empty, report: undefined, problem: undefined, id, at });
  } else {
    runStore.set({ at });
  }
  const past = exportedRun();
  if (past) {
    runStore.set({ report: past.report, agents: past.nodes, last: past.report.run.seq, connection: 'ended' });
    return () => {};
  }
  const refresh = refresher(id, at, stop.signal);
  void refresh.now().then((seq) => {
    if (stop.signal.aborted || seq === undefined) return;
    if (at !== undefined) return runStore.set({ connection: 'ended' });
    const address = `/api/v1/stream/sse?workflow_id=${encodeURIComponent(id)}&names=ours&after=${seq}`;
    return follow(address, String(seq), listener(refresh), stop.signal);
  });
  return () => {
    stop.abort();
    refresh.stop();
  };
}

interface Refresher {
  now: () => Promise<number | undefined>;
  soon: () => void;
  stop: () => void;
}

/**
 * refresher reads the picture that the server folded. Agents are small and read at once after an event; the whole report
 * may be large and is read at most every 150 ms, and with a pause of four times what the last reading took.
 */
function refresher(id: string, at: number | undefined, signal: AbortSignal): Refresher {
  let reading = false;
  let again = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let agentsBusy = false;
  let agentsAgain = false;

  async function now(): Promise<number | undefined> {
    reading = true;
    again = false;
    const begun = performance.now();
    let seq: number | undefined;
    try {
      const [report, last] = await readReport(id, at, signal);
      if (signal.aborted) return undefined;
      seq = report.run.seq;
      runStore.set({ report, agents: report.agents, problem: undefined, last });
    } catch (problem) {
      if (signal.aborted) return undefined;
      noticeRefusal(problem);
      runStore.set({ problem: problem as Refusal });
    }
    const pause = Math.max(150, 4 * (performance.now() - begun));
    timer = setTimeout(() => {
      reading = false;
      if (again && !signal.aborted) void now();
    }, pause);
    return seq;
  }

  async function agents(): Promise<void> {
    agentsBusy = true;
    agentsAgain = false;
    try {
      const list = await unwrap(client.GET('/api/v1/runs/{id}/nodes', { params: { path: { id } }, signal }));
      if (!signal.aborted) runStore.set({ agents: list.nodes });
    } catch {
      // The report, which is read too, shows what is wrong.
    }
    agentsBusy = false;
    if (agentsAgain && !signal.aborted) setTimeout(() => void agents(), 50);
  }

  return {
    now,
    soon: () => {
      again = true;
      if (!reading) void now();
      agentsAgain = true;
      if (!agentsBusy) void agents();
    },
    stop: () => clearTimeout(timer),
  };
}

/** readReport returns the run now, or after event at, and the number of its newest event. */
async function readReport(id: string, at: number | undefined, signal: AbortSignal): Promise<[Report, number]> {
  const now = await unwrap(client.GET('/api/v1/runs/{id}', { params: { path: { id } }, signal }));
  if (at === undefined) return [now, now.run.seq];
  const then = await unwrap(client.GET('/api/v1/runs/{id}', { params: { path: { id }, query: { at } }, signal }));
  return [withLists(then, now, at), now.run.seq];
}

/** withLists gives the picture of a past moment, which comes without lists, what the lists of now had then. */
function withLists(then: Report, now: Report, at: number): Report {
  const time = then.run.time ?? '';
  const running = (ended?: string) => ended !== undefined && ended > time;
  return {
    ...then,
    turns: now.turns.filter((turn) => (turn.started ?? '') <= time).map((turn) => (running(turn.ended) ? { ...turn, status: 'running', ended: undefined } : turn)),
    envelopes: now.envelopes.filter((one) => one.receipt.seq <= at),
    topics: now.topics.map((topic) => ({ ...topic, entries: topic.entries.filter((entry) => entry.seq <= at) })).filter((topic) => topic.entries.length > 0),
    artifacts: now.artifacts.filter((one) => one.seq <= at),
  };
}

function listener(refresh: Refresher) {
  return {
    // A new connection gets all deltas of the running turns again.
    opened: () => {
      forgetSpeech();
      refresh.soon();
    },
    frames: (frames: Frame[]) => {
      let news = false;
      for (const frame of frames) {
        if (frame.event === 'delta') {
          hear(JSON.parse(frame.data) as Delta);
          continue;
        }
        news = true;
        const event = JSON.parse(frame.data) as LogEvent;
        runStore.set({ last: Math.max(runStore.get().last, event.seq) });
        if (event.kind === 'handoff_stored') launch(event);
        if (event.kind === 'turn_ended' && event.turn) noteEnd(event.turn);
      }
      if (news) refresh.soon();
    },
    connection: (connection: Connection, problem?: Refusal) => {
      noticeRefusal(problem);
      runStore.set({ connection });
      if (connection === 'ended') refresh.soon();
    },
  };
}

/** How long an envelope travels on the screen, and how many may at once: more would be noise. */
export const flightTime = 1100;
const mostFlights = 40;

function launch(event: LogEvent): void {
  const envelope = event.data as { id?: string; fromNodeId?: string; toNodeId?: string } | undefined;
  if (!envelope?.fromNodeId || !envelope.toNodeId || runStore.get().flights.length >= mostFlights) return;
  const flight = { id: `${event.seq}`, from: envelope.fromNodeId, to: envelope.toNodeId };
  runStore.set({ flights: [...runStore.get().flights, flight] });
  setTimeout(() => runStore.set({ flights: runStore.get().flights.filter((one) => one.id !== flight.id) }), flightTime);
}
