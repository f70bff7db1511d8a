import type { Report, Turn } from '../api/types';
import type { Pause } from '../store/asked';
import { excerpt, ms } from './format';
import { whyOf } from './why';

/** A Bar is a turn on the time axis. */
export interface Bar {
  turn: Turn;
  from: number;
  to: number;
  pauses: Gap[]; // parts of it that waited for a person
}

/** A Gap is a time in which an agent had no turn, and why. */
export interface Gap {
  from: number;
  to: number;
  why: string;
  after?: Turn; // the turn that began when the waiting ended
}

/** A Lead goes from the end of what was waited for to the turn that could begin then. */
export interface Lead {
  fromAgent: string;
  fromTime: number;
  toAgent: string;
  toTime: number;
  turn: string;
  message?: string;
}

export interface Row {
  agent: string;
  bars: Bar[];
  gaps: Gap[];
}

export interface Chart {
  rows: Row[];
  leads: Lead[];
  from: number;
  to: number;
}

/** chartOf lays the run out in time: a row per agent, with turns, the waiting between them, and what ended each wait. */
export function chartOf(report: Report, now: number, pauses: Pause[] = []): Chart {
  // Without its older turns a long run begins with the oldest that is listed.
  const first = report.older?.turns ? report.turns.find((turn) => turn.started)?.started : report.run.started;
  const start = ms(first) || now;
  const end = report.run.ended ? ms(report.run.ended) : Math.max(now, start + 1000);
  const rows = new Map<string, Row>(report.agents.map((agent) => [agent.name, { agent: agent.name, bars: [], gaps: [] }]));
  for (const turn of report.turns) {
    const row = rows.get(turn.agent) ?? { agent: turn.agent, bars: [], gaps: [] };
    rows.set(turn.agent, row);
    if (!turn.started) continue;
    const [from, to] = [ms(turn.started), turn.ended ? ms(turn.ended) : end];
    row.bars.push({ turn, from, to, pauses: pausesOf(turn, pauses, from, to) });
  }
  const leads: Lead[] = [];
  const causes = causesOf(report);
  for (const row of rows.values()) {
    let before = start;
    for (const bar of row.bars) {
      const cause = causes(bar.turn);
      if (cause) leads.push(cause);
      if (bar.from - before > 1) row.gaps.push({ from: before, to: bar.from, after: bar.turn, why: whyGap(cause, report) });
      before = Math.max(before, bar.to);
    }
    const waits = report.agents.find((agent) => agent.name === row.agent)?.waits ?? report.tasks.find((task) => task.agent === row.agent)?.waits;
    const why = whyOf(waits);
    if (why && before < end) row.gaps.push({ from: before, to: end, why });
    else if (row.bars.length === 0 && !report.older?.turns) row.gaps.push({ from: before, to: end, why: 'waited, and had no turn' });
  }
  return { rows: [...rows.values()], leads, from: start, to: end };
}

/** pausesOf returns the times in which a turn waited for a person. A turn that was cut waits no longer. */
function pausesOf(turn: Turn, pauses: Pause[], from: number, to: number): Gap[] {
  return pauses
    .filter((one) => one.turn === turn.id && one.from < to && (one.to ?? to) > from)
    .map((one) => ({ from: Math.max(from, one.from), to: Math.min(to, one.to ?? to), why: `waited for you: to ${excerpt(one.what, 80)}` }));
}

function whyGap(cause: Lead | undefined, report: Report): string {
  if (!cause) return 'waited for its turn';
  if (!cause.message) return `waited for ${cause.fromAgent} to end`;
  const envelope = report.envelopes.find((one) => one.id === cause.message && one.fromNodeId === cause.fromAgent);
  return `waited for mail; ${cause.fromAgent} wrote: ${excerpt(envelope?.payload.message ?? '', 80)}`;
}

/** letterOf finds the newest message in the prompt of a turn that still runs: no receipt names that turn yet. */
function letterOf(turn: Turn, report: Report): Lead | undefined {
  const upto = turn.status === 'running' ? (turn.inputs?.upto ?? 0) : 0;
  const one = report.envelopes.findLast((envelope) => envelope.toNodeId === turn.agent && envelope.receipt.seq <= upto && envelope.receipt.seq > (turn.inputs?.from ?? 0));
  return one && { fromAgent: one.fromNodeId, fromTime: ms(one.createdAt), toAgent: turn.agent, toTime: 0, turn: turn.id, message: one.id };
}

/** causesOf returns a function that finds what let a turn begin: the last message that it read, or the last task it needs. */
function causesOf(report: Report): (turn: Turn) => Lead | undefined {
  const mail = new Map<string, Lead>();
  for (const one of report.envelopes) {
    const { turn } = one.receipt;
    if (!turn) continue;
    mail.set(turn, { fromAgent: one.fromNodeId, fromTime: ms(one.createdAt), toAgent: one.toNodeId, toTime: 0, turn, message: one.id });
  }
  const tasks = new Map(report.tasks.map((task) => [task.name, task]));
  const ends = new Map<string, Turn>();
  for (const turn of report.turns) ends.set(`${turn.task} ${turn.iteration}`, turn);
  return (turn) => {
    const started = ms(turn.started);
    const letter = mail.get(turn.id) ?? letterOf(turn, report);
    if (letter) return { ...letter, toTime: started };
    let last: Turn | undefined;
    for (const needed of tasks.get(turn.task ?? '')?.depends_on ?? []) {
      const found = ends.get(`${needed.task} ${turn.iteration}`);
      if (found?.ended && (!last || ms(found.ended) > ms(last.ended))) last = found;
    }
    return last && { fromAgent: last.agent, fromTime: ms(last.ended), toAgent: turn.agent, toTime: started, turn: turn.id };
  };
}
