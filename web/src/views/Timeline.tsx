import { useEffect, useMemo, useRef, useState } from 'react';
import { clockOf, duration, excerpt } from '../lib/format';
import { chartOf, type Chart, type Gap } from '../lib/gantt';
import { useNow } from '../lib/now';
import { select, useRoute } from '../lib/route';
import { isOver, toneOf } from '../lib/status';
import { whyOf } from '../lib/why';
import { usePauses } from '../store/asked';
import { runStore } from '../store/run';
import { useStore } from '../store/store';
import { Empty } from './Parts';
import { agentOf } from './steps';

const rowHeight = 34;
const labelWidth = 128;
const axis = 26;

/** Timeline is a Gantt chart: turns and waits of each agent, and what ended each wait. */
export function Timeline() {
  const report = useStore(runStore, (s) => s.report);
  const box = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [width, setWidth] = useState(900);
  const live = report !== undefined && !isOver(report.run.status);
  const now = useNow(live ? 500 : 60_000);
  const pauses = usePauses(report);
  const chart = useMemo(() => (report ? chartOf(report, live ? now : 0, pauses) : undefined), [report, live ? now : 0, pauses]);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width - labelWidth - 16));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  if (!chart || !report) return null;
  const inner = Math.max(200, width) * zoom;
  return (
    <div className="timeline">
      <div className="row timeline-tools">
        <button aria-label="Zoom out" onClick={() => setZoom(Math.max(1, zoom / 1.6))}>
          −
        </button>
        <button aria-label="Zoom in" onClick={() => setZoom(Math.min(400, zoom * 1.6))}>
          +
        </button>
        <button onClick={() => setZoom(1)}>Whole run</button>
        <span className="dim small">Ctrl and wheel zoom. Dashes are waits: point at one to see why.</span>
      </div>
      <div
        className="timeline-scroll"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label="Turns and waits in time"
        onWheel={(event) => {
          if (event.ctrlKey) setZoom((old) => Math.max(1, Math.min(400, old * (event.deltaY < 0 ? 1.2 : 1 / 1.2))));
        }}
      >
        {report.turns.length === 0 ? <Empty title="No turn has begun yet." /> : <Gantt chart={chart} inner={inner} />}
      </div>
    </div>
  );
}

function Gantt({ chart, inner }: { chart: Chart; inner: number }) {
  const route = useRoute();
  const agent = agentOf(route);
  const agents = useStore(runStore, (s) => s.agents);
  const span = Math.max(1, chart.to - chart.from);
  const x = (time: number) => ((time - chart.from) / span) * inner;
  const rowOf = new Map(chart.rows.map((row, index) => [row.agent, index]));
  const height = axis + chart.rows.length * rowHeight;
  const now = new Map(agents.map((one) => [one.name, whyOf(one.waits)]));
  const y = (row: number) => axis + row * rowHeight;
  return (
    <div className="gantt" style={{ width: labelWidth + inner + 8, height }}>
      <div className="gantt-labels" style={{ width: labelWidth }}>
        {chart.rows.map((row, index) => (
          <button key={row.agent} className={row.agent === agent ? 'gantt-label selected' : 'gantt-label'} style={{ top: y(index), height: rowHeight }} onClick={() => select({ agent: row.agent })}>
            {excerpt(row.agent, 18)}
          </button>
        ))}
      </div>
      <svg width={inner + 8} height={height} role="group" aria-label="Gantt chart" style={{ left: labelWidth }}>
        {ticks(chart.from, chart.to, inner).map((time) => (
          <g key={time} className="tick">
            <line x1={x(time)} x2={x(time)} y1={axis - 6} y2={height} />
            <text x={x(time) + 4} y={14}>
              {clockOf(time)}
            </text>
          </g>
        ))}
        {chart.rows.map((row, index) => (
          <g key={row.agent} className={row.agent === agent ? 'gantt-row selected' : 'gantt-row'}>
            {row.gaps.map((gap) => (
              <Wait key={gap.from} gap={gap} x1={x(gap.from)} x2={x(gap.to)} y={y(index) + rowHeight / 2} why={gap.why === 'now' ? (now.get(row.agent) ?? 'waits') : gap.why} />
            ))}
            {row.bars.map((bar) => (
              <g
                key={bar.turn.id}
                className={`turn-bar tone-${toneOf(bar.turn.status)}${route.turn === bar.turn.id ? ' selected' : ''}`}
                role="button"
                tabIndex={0}
                aria-label={`Turn ${bar.turn.id}, ${bar.turn.status}, ${duration(bar.to - bar.from)}`}
                onClick={() => select({ turn: bar.turn.id })}
                onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ') && select({ turn: bar.turn.id })}
              >
                <title>{`${bar.turn.id} · ${bar.turn.status} · ${duration(bar.to - bar.from)}`}</title>
                <rect x={x(bar.from)} y={y(index) + 6} width={Math.max(3, x(bar.to) - x(bar.from))} height={rowHeight - 12} rx={4} />
                {bar.pauses.map((pause) => (
                  <Paused key={pause.from} pause={pause} x1={x(pause.from)} x2={x(pause.to)} y={y(index)} />
                ))}
                {x(bar.to) - x(bar.from) > 60 && (
                  <text x={x(bar.from) + 7} y={y(index) + rowHeight / 2 + 4}>
                    {bar.turn.id}
                  </text>
                )}
              </g>
            ))}
          </g>
        ))}
        {chart.leads.map((lead) => {
          const from = rowOf.get(lead.fromAgent);
          const to = rowOf.get(lead.toAgent);
          if (from === undefined || to === undefined) return null;
          const [x1, x2, y1, y2] = [x(lead.fromTime), x(lead.toTime), y(from) + rowHeight / 2, y(to) + rowHeight / 2];
          const chosen = route.turn === lead.turn || (route.message !== undefined && route.message === lead.message);
          return <path key={`${lead.turn} ${lead.message ?? ''}`} className={chosen ? 'lead selected' : 'lead'} d={`M${x1} ${y1} C ${x1 + 14} ${y1}, ${x2 - 14} ${y2}, ${x2} ${y2}`} />;
        })}
      </svg>
    </div>
  );
}

/** Paused is the part of a turn that waited for a person: hollow, with dashes, where the rest of the turn is solid. */
function Paused({ pause, x1, x2, y }: { pause: Gap; x1: number; x2: number; y: number }) {
  if (x2 - x1 < 2) return null;
  const label = `${pause.why} · ${duration(pause.to - pause.from)}`;
  return (
    <g className="paused" role="img" aria-label={label}>
      <title>{label}</title>
      <rect x={x1} y={y + 6} width={x2 - x1} height={rowHeight - 12} />
      <line x1={x1} x2={x2} y1={y + rowHeight / 2} y2={y + rowHeight / 2} />
    </g>
  );
}

function Wait({ gap, x1, x2, y, why }: { gap: Gap; x1: number; x2: number; y: number; why: string }) {
  if (x2 - x1 < 2) return null;
  const label = `${why} · ${duration(gap.to - gap.from)}`;
  return (
    <g className="wait" role="img" aria-label={label}>
      <title>{label}</title>
      <line className="wait-hit" x1={x1} x2={x2} y1={y} y2={y} />
      <line x1={x1 + 2} x2={x2 - 2} y1={y} y2={y} />
      {x2 - x1 > 170 && (
        <text x={x1 + 8} y={y - 5}>
          {excerpt(why, Math.floor((x2 - x1) / 7))}
        </text>
      )}
    </g>
  );
}

/** ticks returns round times, about one for each 110 pixels. */
function ticks(from: number, to: number, width: number): number[] {
  const wanted = ((to - from) / Math.max(1, width)) * 110;
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 21600e3, 43200e3, 86400e3];
  const step = steps.find((one) => one >= wanted) ?? 86400e3;
  const found: number[] = [];
  for (let time = Math.ceil(from / step) * step; time <= to && found.length < 2000; time += step) found.push(time);
  return found;
}
