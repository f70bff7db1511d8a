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
  listed: boolean; // the report has its lists: turns, envelopes, topics, artifacts
  most: number; // how many of the newest entries each list has
  agents: Agent[];
  flights: Flight[];
  connection: Connection;
  last: number; // the number of the newest event
  at?: number; // the past moment that is shown
  problem?: Refusal;
}

/** A long run has lists that no browser draws: the page shows their newest entries, and more when the person asks. */
const fewest = 300;

const empty: RunState = { listed: false, most: fewest, agents: [], flights: [], connection: 'connecting', last: 0 };
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
    runStore.set({ report: past.report, listed: true, agents: past.nodes, last: past.report.run.seq, connection: 'ended' });
    return () => {};
  }
  const refresh = refresher(id, at, stop.signal);
  current = refresh;
  void begin(refresh, stop.signal).then((seq) => {
    if (stop.signal.aborted || seq === undefined) return;
    if (at !== undefined) return runStore.set({ connection: 'ended' });
    const address = `/api/v1/stream/sse?workflow_id=${encodeURIComponent(id)}&names=ours&after=${seq}`;
    return follow(address, String(seq), listener(refresh), stop.signal);
  });
  return () => stop.abort();
}

/** begin reads the run for the first time, and again until the server can be reached. It returns the number of its last event. */
async function begin(refresh: Refresher, signal: AbortSignal): Promise<number | undefined> {
  for (;;) {
    const seq = await refresh.first();
    if (seq !== undefined || signal.aborted || !runStore.get().problem?.passes) return seq;
    await new Promise((resolve) => setTimeout(resolve, afterFailure));
  }
}

interface Refresher {
  first: () => Promise<number | undefined>;
  soon: () => void;
}

let current: Refresher | undefined;

/** showOlder reads longer lists. */
export function showOlder(): void {
  runStore.set({ most: runStore.get().most * 4 });
  current?.soon();
}

/** How long the page waits for the lists of a run before it shows the run without them. */
const patience = 200;

/** How long the page waits after a reading without an answer. */
const afterFailure = 2000;

/**
 * refresher reads the picture that the server folded. The picture without its lists is small and is read at once after an
 * event. The server collects the lists from the whole log, so they are read with a pause of four times what the last
 * reading took.
 */
function refresher(id: string, at: number | undefined, signal: AbortSignal): Refresher {
  const ask = (query: { at?: number; lists?: boolean; last?: number }) => unwrap(client.GET('/api/v1/runs/{id}', { params: { path: { id }, query }, signal }));
  // take returns whether the reading is done: one that had no answer is not.
  const take = async (asked: Promise<Report>, put: (fresh: Report) => unknown): Promise<boolean> => {
    try {
      const fresh = await asked;
      if (!signal.aborted) put(fresh);
      return true;
    } catch (problem) {
      if (signal.aborted) return true;
      noticeRefusal(problem);
      runStore.set({ problem: problem as Refusal });
      return !(problem as Refusal).passes;
    }
  };
  const shown = (report: Report, more: Partial<RunState> = {}) =>
    runStore.set({ report, agents: report.agents, problem: undefined, last: Math.max(runStore.get().last, report.run.seq), ...more });
  const bare = { at, lists: false };
  const picture = () => take(ask(bare), (fresh) => shown(withLists(fresh, runStore.get().report)));
  const lists = () =>
    take(ask({ at, last: runStore.get().most }), (fresh) => {
      const { report } = runStore.get();
      // A picture that came meanwhile may be newer.
      const newer = !at && report && report.run.seq > fresh.run.seq;
      shown(newer ? withLists(report, fresh) : fresh, { listed: true });
    });
  const pictureSoon = paced(picture, 30, 1, signal);
  const listsSoon = paced(lists, 150, 4, signal);
  const listsLater = paced(() => new Promise((done) => setTimeout(() => done(listsSoon().then(() => true)), 60)), 0, 0, signal); // the picture goes first
  return {
    async first() {
      let whole = false;
      const listing = listsSoon().then(() => (whole = true));
      if (at) void take(ask({ lists: false }), (now) => runStore.set({ last: now.run.seq }));
      await Promise.race([listing, new Promise((resolve) => setTimeout(resolve, patience))]);
      if (!whole) await take(ask(bare), (fresh) => whole || shown(fresh, { listed: false }));
      return signal.aborted ? undefined : runStore.get().report?.run.seq;
    },
    soon() {
      void pictureSoon();
      void listsLater();
    },
  };
}

/** paced returns a function that has something read soon: one reading at a time, and a pause after each. What failed is read again. */
function paced(read: () => Promise<boolean>, least: number, times: number, signal: AbortSignal): () => Promise<void> {
  let busy = false;
  let again = false;
  return async function soon() {
    again = busy;
    if (busy || signal.aborted) return;
    busy = true;
    const begun = performance.now();
    const done = await read();
    const pause = done ? Math.max(least, times * (performance.now() - begun)) : afterFailure;
    setTimeout(() => {
      busy = false;
      if (again || !done) void soon();
    }, pause);
  };
}

/** withLists gives a picture the lists of another report of the same run. */
function withLists(picture: Report, lists?: Report): Report {
  if (!lists) return picture;
  const { turns, envelopes, topics, artifacts, older } = lists;
  return { ...picture, run: { ...picture.run, actions: lists.run.actions, unsourced: lists.run.unsourced }, turns, envelopes, topics, artifacts, older };
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
      let { last } = runStore.get();
      for (const frame of frames) {
        if (frame.event === 'delta') {
          news = hear(JSON.parse(frame.data) as Delta) || news; // its first word makes an agent one that writes
          continue;
        }
        news = true;
        const event = JSON.parse(frame.data) as LogEvent;
        last = Math.max(last, event.seq);
        if (event.kind === 'handoff_stored') launch(event);
        if (event.kind === 'turn_ended' && event.turn) noteEnd(event.turn);
      }
      if (last > runStore.get().last) runStore.set({ last });
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
