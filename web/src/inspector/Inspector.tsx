import { useEffect, useRef, useState } from 'react';
import type { Agent, Report, Turn, Wait } from '../api/types';
import { asksNow, statusOf } from '../lib/doing';
import { ago, cost, count, duration, ms } from '../lib/format';
import { useNow } from '../lib/now';
import { exported, select, useRoute } from '../lib/route';
import { isOver } from '../lib/status';
import { sentence } from '../lib/why';
import { actOnAgent, type AgentAction } from '../store/actions';
import { useFeatures } from '../store/features';
import { useMoment } from '../store/moment';
import { runStore } from '../store/run';
import { useStore } from '../store/store';
import { useTurn } from '../store/turns';
import { ui } from '../store/ui';
import { Badge } from '../views/Parts';
import { agentOf } from '../views/steps';
import { Changes } from './Changes';
import { Composer } from './Composer';
import { ContextGauge } from './ContextGauge';
import { Mail } from './Mail';
import { Output } from './Output';
import { Prompt } from './Prompt';
import { ToolEvents } from './ToolEvents';
import { Usage } from './Usage';

const tabs = ['Output', 'Prompt', 'Mail', 'Tools', 'Changes', 'Usage'] as const;
type Tab = (typeof tabs)[number];

/** Inspector shows everything about one agent, and about one of its turns. */
export function Inspector({ report }: { report: Report }) {
  const route = useRoute();
  const agents = useStore(runStore, (s) => s.agents);
  const [tab, setTab] = useState<Tab>('Output');
  const name = agentOf(route) ?? '';
  const agent = agents.find((one) => one.name === name);
  const turns = report.turns.filter((one) => one.agent === name);
  const listed = useStore(runStore, (s) => s.listed);
  const now = useStore(runStore, (s) => s.at === undefined); // nobody steps into the past
  const id = route.turn ?? agent?.turn ?? turns.at(-1)?.id;
  const known = turns.find((one) => one.id === id);
  const full = useTurn(report.run.id, id, known?.status);
  const chosen = known ?? (full.value?.id === id ? full.value : undefined); // the list may lag behind, or leave old turns out
  useEffect(() => {
    if (route.message) setTab('Mail');
  }, [route.message]);
  return (
    <section className="inspector" aria-label={`Agent ${name}`}>
      <Head report={report} name={name} agent={agent} acts={!exported && now} waits={agent?.waits ?? report.tasks.find((task) => task.agent === name)?.waits ?? []} />
      <TurnPicker report={report} turns={turns} chosen={chosen} listed={listed} />
      <Tabs tab={tab} setTab={setTab} />
      <div className="inspector-body" role="tabpanel" id="inspector-panel" aria-label={tab} tabIndex={0}>
        {full.problem && tab !== 'Mail' && <p className="refusal">{full.problem.message}</p>}
        {tab === 'Output' && <Output turn={chosen} full={full.value} reason={chosen?.reason} />}
        {tab === 'Prompt' && <Prompt full={full.value} />}
        {tab === 'Mail' && <Mail report={report} agent={name} message={route.message} />}
        {tab === 'Tools' && <ToolEvents full={full.value} turn={chosen} />}
        {tab === 'Changes' && <Changes run={report.run.id} turn={chosen} artifacts={report.artifacts.filter((one) => one.agent === name)} />}
        {tab === 'Usage' && <Usage agent={agent} turn={chosen} turns={turns} />}
      </div>
      {!exported && now && !isOver(report.run.status) && <Composer run={report.run.id} agent={name} busy={Boolean(agent?.turn)} />}
    </section>
  );
}

function Tabs({ tab, setTab }: { tab: Tab; setTab: (tab: Tab) => void }) {
  const list = useRef<HTMLDivElement>(null);
  return (
    <div
      className="inspector-tabs"
      role="tablist"
      aria-label="Parts of the turn"
      ref={list}
      onKeyDown={(event) => {
        const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        if (!by) return;
        const next = (tabs.indexOf(tab) + by + tabs.length) % tabs.length;
        setTab(tabs[next] ?? 'Output');
        (list.current?.children[next] as HTMLElement | undefined)?.focus();
      }}
    >
      {tabs.map((one) => (
        <button key={one} role="tab" aria-selected={one === tab} aria-controls="inspector-panel" tabIndex={one === tab ? 0 : -1} onClick={() => setTab(one)}>
          {one}
        </button>
      ))}
    </div>
  );
}

function Head({ report, name, agent, acts, waits }: { report: Report; name: string; agent?: Agent; acts: boolean; waits: Wait[] }) {
  const now = useNow();
  const moment = useMoment(report);
  const over = isOver(report.run.status);
  const status = statusOf(report, agent);
  const asks = asksNow(report, agent);
  const more = over || asks ? undefined : (agent?.stream ?? agent?.connection);
  return (
    <header className="inspector-head">
      <div className="row">
        <h2>{name}</h2>
        <Badge status={status}>{asks ? 'waits for you' : undefined}</Badge>
        {more && more !== status && <span className="dim">{more}</span>}
        <span className="grow" />
        <button className="quiet icon" onClick={() => select({})} aria-label="Close the inspector">
          ×
        </button>
      </div>
      <div className="row dim small">
        {[agent?.provider, agent?.model].filter(Boolean).join(' · ')}
        {agent?.usage && <span className="num">{cost(agent.usage)}</span>}
        {agent?.context && <span className="num">{count(agent.context.tokens)} tokens of context</span>}
        <ContextGauge context={agent?.context} />
        {agent?.last_activity && <span>active {ago(agent.last_activity, now)}</span>}
      </div>
      {waits.map((wait, index) => (
        <p className={wait.for === 'mail' ? 'dim small' : 'why small'} key={index}>
          {wait.for !== 'mail' && <span aria-hidden="true">◌ </span>}
          {sentence(wait)}
          {wait.since && <span className="dim"> · {duration(moment - ms(wait.since))}</span>}
        </p>
      ))}
      {agent?.reason && <p className="why small">{agent.reason}</p>}
      {acts && !over && agent && <AgentActions run={report.run.id} agent={agent} />}
    </header>
  );
}

function AgentActions({ run, agent }: { run: string; agent: Agent }) {
  const paused = (agent.waits ?? []).some((wait) => wait.for === 'pause');
  const ended = agent.status === 'failed' || agent.status === 'cancelled';
  const actions: [AgentAction, string, string][] = ended
    ? [['start', 'Start', 'Give it turns and mail again']]
    : [
        paused ? ['resume', 'Resume', 'Give it turns again'] : ['pause', 'Pause', 'Its turn finishes, and it gets no other'],
        ['reset', 'Reset', 'Forget its session, cut its turn and begin it anew'],
        ['stop', 'Stop', 'It gets no more turns'],
      ];
  return (
    <div className="row actions">
      {actions.map(([action, label, title]) => (
        <button key={action} title={title} onClick={() => void actOnAgent(run, agent.name, action)}>
          {label}
        </button>
      ))}
    </div>
  );
}

function TurnPicker({ report, turns, chosen, listed }: { report: Report; turns: Turn[]; chosen?: Turn; listed: boolean }) {
  const can = useFeatures();
  const now = useMoment(report);
  if (!chosen) return <p className="dim turn-picker">{listed ? 'No turn yet.' : 'Reading the turns…'}</p>;
  const at = turns.indexOf(chosen);
  const step = (by: number) => {
    const turn = turns[at + by];
    if (turn) select({ turn: turn.id });
  };
  return (
    <div className="row turn-picker">
      <button className="quiet icon" onClick={() => step(-1)} disabled={at <= 0} aria-label="The turn before">
        ‹
      </button>
      <select aria-label="Turn" value={chosen.id} onChange={(event) => select({ turn: event.target.value })}>
        {(at < 0 ? [chosen, ...turns] : turns).map((turn) => (
          <option key={turn.id} value={turn.id}>
            {turn.id} · {turn.status}
          </option>
        ))}
      </select>
      <button className="quiet icon" onClick={() => step(1)} disabled={at < 0 || at >= turns.length - 1} aria-label="The turn after">
        ›
      </button>
      <span className="dim small num">{chosen.started ? duration((chosen.ended ? ms(chosen.ended) : now) - ms(chosen.started)) : ''}</span>
      <span className="grow" />
      {can.fork && report.run.kind !== 'line' && (
        <button className="quiet small" onClick={() => ui.set({ dialog: { kind: 'fork', turn: chosen.id } })} title="Start a new run from here">
          Fork
        </button>
      )}
    </div>
  );
}
