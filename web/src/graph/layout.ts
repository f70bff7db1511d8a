import dagre from '@dagrejs/dagre';
import { keep } from '../lib/theme';

export interface Point {
  x: number;
  y: number;
}

export interface Shape {
  width: number;
  height: number;
}

const gap = 36;
const rankGap = 72;

/**
 * layout places nodes from top to bottom along their edges. A rank with more nodes than fit beside each other becomes
 * several rows, so that a supervisor with 200 workers is a block and not a line.
 */
export function layout(names: string[], edges: [string, string][], shape: Shape): Record<string, Point> {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: gap, ranksep: rankGap, ranker: names.length > 60 ? 'longest-path' : 'network-simplex' });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(name, { width: shape.width, height: shape.height });
  for (const [from, to] of edges) if (from !== to && graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to);
  dagre.layout(graph);
  const ranks = new Map<number, { name: string; x: number }[]>();
  for (const name of names) {
    const { x, y } = graph.node(name) as Point;
    const rank = ranks.get(Math.round(y)) ?? [];
    rank.push({ name, x });
    ranks.set(Math.round(y), rank);
  }
  const most = Math.max(5, Math.ceil(Math.sqrt(names.length * 1.1)));
  const placed: Record<string, Point> = {};
  let y = 0;
  for (const [, rank] of [...ranks].sort((a, b) => a[0] - b[0])) {
    const wraps = rank.length > most;
    if (!wraps) rank.sort((a, b) => a.x - b.x); // else in the server's order
    for (let from = 0; from < rank.length; from += most) {
      const row = rank.slice(from, from + most);
      const width = row.length * shape.width + (row.length - 1) * gap;
      row.forEach((one, index) => {
        const x = wraps ? index * (shape.width + gap) - width / 2 : one.x - middle(ranks, shape) - shape.width / 2;
        placed[one.name] = { x, y };
      });
      y += shape.height + (wraps && from + most < rank.length ? gap : rankGap);
    }
  }
  return placed;
}

/** middle is the horizontal middle of all ranks that are not wrapped, as dagre placed them. */
function middle(ranks: Map<number, { x: number }[]>, shape: Shape): number {
  let low = Infinity;
  let high = -Infinity;
  for (const rank of ranks.values()) {
    for (const { x } of rank) {
      low = Math.min(low, x - shape.width / 2);
      high = Math.max(high, x + shape.width / 2);
    }
  }
  return (low + high) / 2;
}

/** Places where a person has put cards, of one run. They stay there when the page is loaded again. */
export function readPlaces(run: string): Record<string, Point> {
  try {
    return JSON.parse(keep.read(`swarm:places:${run}`) ?? '{}') as Record<string, Point>;
  } catch {
    return {};
  }
}

export const writePlaces = (run: string, places: Record<string, Point>) => keep.write(`swarm:places:${run}`, JSON.stringify(places));

/** whole rounds a point to pixels. */
export const whole = ({ x, y }: Point): Point => ({ x: Math.round(x), y: Math.round(y) });
