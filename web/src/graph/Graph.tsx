import { Background, Controls, MarkerType, MiniMap, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore as useFlow, type Edge, type Node, type NodeChange } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { select, useRoute } from '../lib/route';
import { useDark } from '../lib/theme';
import { runStore, type Flight } from '../store/run';
import { useStore } from '../store/store';
import { Empty } from '../views/Parts';
import { agentOf } from '../views/steps';
import { AgentCard } from './AgentCard';
import { layout, readPlaces, whole, writePlaces, type Point } from './layout';
import { MailEdge } from './MailEdge';
import { arrows, cards, isPipeline, type Arrow, type Card } from './model';

const nodeTypes = { agent: AgentCard };
const edgeTypes = { mail: MailEdge };
const shape = { width: 216, height: 104 };
// Cards have one size, so edges are drawn at once and cards need not be measured.
const handles: Node['handles'] = [
  { type: 'target', position: Position.Top, x: shape.width / 2, y: 0, width: 1, height: 1 },
  { type: 'source', position: Position.Bottom, x: shape.width / 2, y: shape.height, width: 1, height: 1 },
];

/** Graph shows who is there, who may write to whom, and what each does now. */
export function Graph() {
  return (
    <ReactFlowProvider>
      <Canvas />
    </ReactFlowProvider>
  );
}

function Canvas() {
  const report = useStore(runStore, (s) => s.report);
  const agents = useStore(runStore, (s) => s.agents);
  const flights = useStore(runStore, (s) => s.flights);
  const route = useRoute();
  const dark = useDark();
  const flow = useReactFlow();
  const run = report?.run.id ?? '';
  const [places, setPlaces] = useState(() => readPlaces(run));
  const shown = useMemo(() => (report ? cards(report, agents) : []), [report, agents]);
  const paths = useMemo(() => (report ? arrows(report) : []), [report]);
  const positions = usePositions(shown, paths);
  const selected = selectedCard(shown, route, report ? isPipeline(report) : false);

  const nodes: Node[] = useSame(shown.map((card) => ({
    id: card.id,
    type: 'agent',
    position: places[card.id] ?? positions[card.id] ?? { x: 0, y: 0 },
    data: { card, receives: flights.some((flight) => flight.to === card.agent) },
    selected: card.id === selected,
    measured: shape,
    handles,
    ariaLabel: `${card.title}, ${card.status}`,
  })));
  const edges: Edge[] = useSame(paths.map((arrow) => ({
    id: arrow.id,
    source: arrow.from,
    target: arrow.to,
    type: 'mail',
    focusable: false,
    data: { arrow, flights: along(flights, arrow), look: lookOf(arrow, selected, paths.length) },
    markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
    markerStart: arrow.both ? { type: MarkerType.ArrowClosed, width: 16, height: 16, orient: 'auto-start-reverse' } : undefined,
  })));

  const move = useCallback((changes: NodeChange[]) => {
    setPlaces((old) => {
      const next = { ...old };
      for (const change of changes) if (change.type === 'position' && change.position) next[change.id] = whole(change.position);
      return next;
    });
  }, []);
  const size = shown.length;
  const width = useFlow((state) => state.width);
  useEffect(() => {
    if (size === 0 || width === 0) return;
    const timer = setTimeout(() => void flow.fitView(fitOf(size)));
    return () => clearTimeout(timer);
  }, [flow, size, width]); // the window changes it, and the inspector beside the graph

  if (report && size === 0) return <Empty title="This run has no agents yet." />;
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      onNodesChange={move}
      onNodeDragStop={(_, __, moved) => writePlaces(run, { ...places, ...Object.fromEntries(moved.map((node) => [node.id, whole(node.position)])) })}
      onNodeClick={(_, node) => select(selectionOf(node.data.card as Card, report ? isPipeline(report) : false))}
      onPaneClick={() => select({})}
      onKeyDown={(event) => {
        const id = event.target instanceof HTMLElement ? event.target.dataset.id : undefined;
        const card = shown.find((one) => one.id === id);
        if (card && (event.key === 'Enter' || event.key === ' ')) select(selectionOf(card, report ? isPipeline(report) : false));
      }}
      colorMode={dark ? 'dark' : 'light'}
      nodesConnectable={false}
      nodesFocusable
      edgesFocusable={false}
      deleteKeyCode={null}
      onlyRenderVisibleElements={size > 60}
      minZoom={0.08}
      maxZoom={2}
      fitView
      fitViewOptions={fitOf(size)}
      proOptions={{ hideAttribution: true }}
    >
      <Background gap={24} size={1} />
      <Controls showInteractive={false}>
        <button
          className="react-flow__controls-button"
          title="Tidy up: forget where cards were put"
          aria-label="Tidy up"
          onClick={() => {
            setPlaces({});
            writePlaces(run, {});
            setTimeout(() => void flow.fitView(fitOf(size)));
          }}
        >
          ↺
        </button>
      </Controls>
      {size > 30 && <MiniMap pannable zoomable ariaLabel="Overview" />}
    </ReactFlow>
  );
}

/** fitOf is how the whole graph is shown: a small one as large as it can be read well, and a large one with little room around it. */
const fitOf = (size: number) => ({ padding: size > 60 ? 0.03 : 0.12, maxZoom: innerWidth > 2800 ? 2 : innerWidth > 2000 ? 1.7 : 1.1 });

/** useSame returns a list whose entries are the objects of before where nothing about them has changed, so that only the others are drawn again. */
function useSame<T extends { id: string }>(list: T[]): T[] {
  const before = useRef(new Map<string, [string, T]>());
  const next = new Map<string, [string, T]>();
  for (const one of list) {
    const text = JSON.stringify(one);
    const old = before.current.get(one.id);
    next.set(one.id, old?.[0] === text ? old : [text, one]);
  }
  before.current = next;
  return [...next.values()].map(([, one]) => one);
}

/** usePositions places the cards anew only when cards or edges come or go, never when a status changes. */
function usePositions(shown: Card[], paths: Arrow[]): Record<string, Point> {
  const key = JSON.stringify([shown.map((card) => card.id), paths.map((arrow) => arrow.id)]);
  return useMemo(() => {
    const [names, ids] = JSON.parse(key) as [string[], string[]];
    return layout(
      names,
      ids.map((id) => id.split(' ') as [string, string]),
      shape,
    );
  }, [key]);
}

/** lookOf stresses the edges of the selected card. Where there are many edges, the others are faint. */
const lookOf = (arrow: Arrow, selected: string | undefined, count: number) => (selected && (arrow.from === selected || arrow.to === selected) ? 'chosen' : count > 60 ? 'faint' : '');

const along = (flights: Flight[], arrow: Arrow) =>
  flights.filter((flight) => (flight.from === arrow.from && flight.to === arrow.to) || (flight.from === arrow.to && flight.to === arrow.from));

/** A card of a pipeline is a task: its newest turn is selected. A card of a team is an agent. */
function selectionOf(card: Card, pipeline: boolean) {
  if (pipeline && card.task?.turn) return { turn: card.task.turn };
  return { agent: card.agent };
}

function selectedCard(shown: Card[], route: { agent?: string; turn?: string; message?: string }, pipeline: boolean): string | undefined {
  if (pipeline && route.turn) {
    const task = route.turn.split('/').slice(0, -2).join('/');
    if (shown.some((card) => card.id === task)) return task;
  }
  const agent = agentOf(route);
  return shown.find((card) => card.agent === agent)?.id;
}
