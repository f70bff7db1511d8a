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

/** A Line is a row of cards, each with its left edge, and the space below the row. */
interface Line {
  cards: { name: string; x: number }[];
  below: number;
}

/**
 * layout places nodes from top to bottom along their edges. A rank with more nodes than fit beside each other becomes
 * several rows, so that a supervisor with 200 workers is a block and not a line. A chain that is too long to be read on one
 * screen becomes several columns.
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
  return inColumns(linesOf([...ranks].sort((a, b) => a[0] - b[0]).map(([, rank]) => rank), names.length, shape), shape);
}

/** linesOf breaks ranks that are too wide. */
function linesOf(ranks: { name: string; x: number }[][], size: number, shape: Shape): Line[] {
  const most = Math.max(5, Math.ceil(Math.sqrt(size * 1.1)));
  const centre = middle(ranks, shape) + shape.width / 2;
  const lines: Line[] = [];
  for (const rank of ranks) {
    const wraps = rank.length > most;
    if (!wraps) rank.sort((a, b) => a.x - b.x); // else in the server's order
    for (let from = 0; from < rank.length; from += most) {
      const row = rank.slice(from, from + most);
      const width = row.length * shape.width + (row.length - 1) * gap;
      lines.push({
        cards: row.map(({ name, x }, index) => ({ name, x: wraps ? index * (shape.width + gap) - width / 2 : x - centre })),
        below: wraps && from + most < rank.length ? gap : rankGap,
      });
    }
  }
  return lines;
}

/** A graph that is taller than this has letters that nobody can read on a laptop. The shape of a screen is its width by its height. */
const tallest = 2400;
const screenShape = 1.9;

/** inColumns puts lines below each other, in as many columns as give the picture the shape of a screen. */
function inColumns(lines: Line[], shape: Shape): Record<string, Point> {
  const edges = lines.flatMap((line) => line.cards.map((card) => card.x));
  const [left, right] = [Math.min(...edges), Math.max(...edges) + shape.width];
  const width = right - left + rankGap;
  const tall = lines.reduce((sum, line) => sum + shape.height + line.below, 0) > tallest;
  const below = (line: Line) => (tall ? gap : line.below);
  const height = lines.reduce((sum, line) => sum + shape.height + below(line), 0);
  const columns = tall ? Math.max(1, Math.round(Math.sqrt((screenShape * height) / width))) : 1;
  const placed: Record<string, Point> = {};
  let [column, y] = [0, 0];
  for (const line of lines) {
    for (const { name, x } of line.cards) placed[name] = { x: x + column * width, y };
    y += shape.height + below(line);
    if (y >= height / columns) [column, y] = [column + 1, 0];
  }
  return placed;
}

/** middle is the horizontal middle of all ranks, as dagre placed them. */
function middle(ranks: { x: number }[][], shape: Shape): number {
  let low = Infinity;
  let high = -Infinity;
  for (const rank of ranks) {
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
