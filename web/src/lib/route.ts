import { Store, useStore } from '../store/store';

export type View = 'graph' | 'timeline' | 'conversation' | 'board' | 'review';
export const views: View[] = ['graph', 'timeline', 'conversation', 'board', 'review'];

/** A Selection is what the person looks at. It is the same in every view of a run. */
export interface Selection {
  agent?: string;
  turn?: string;
  message?: string;
}

/** A Route is what the address says: the list of runs, or a run with a view, a selection and a moment. */
export interface Route extends Selection {
  run?: string;
  view: View;
  at?: number;
}

/** exported is whether the page is a file that `swarm export --html` made: it has no server, so no path. */
export const exported = document.getElementById('swarm-export') !== null;

export function parseRoute(path: string, search: string): Route {
  const parts = path.split('/').filter(Boolean).map(decode);
  const query = new URLSearchParams(search);
  const view = views.find((one) => one === query.get('view')) ?? 'graph';
  const at = Number(query.get('at') ?? '');
  const route: Route = { view, at: at > 0 ? at : undefined };
  if (parts[0] !== 'r' || !parts[1]) return route;
  route.run = parts[1];
  const rest = parts.slice(3).join('/');
  if (!rest) return route;
  if (parts[2] === 't') return { ...route, turn: rest, agent: undefined };
  if (parts[2] === 'a') return { ...route, agent: rest };
  if (parts[2] === 'm') return { ...route, message: rest };
  return route;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const encode = (text: string) => text.split('/').map(encodeURIComponent).join('/');

export function formatRoute(route: Partial<Route>): string {
  if (!route.run) return '/';
  let path = `/r/${encodeURIComponent(route.run)}`;
  if (route.message) path += `/m/${encode(route.message)}`;
  else if (route.turn) path += `/t/${encode(route.turn)}`;
  else if (route.agent) path += `/a/${encode(route.agent)}`;
  const query = new URLSearchParams();
  if (route.view && route.view !== 'graph') query.set('view', route.view);
  if (route.at) query.set('at', String(route.at));
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

function current(): Route {
  if (!exported) return parseRoute(location.pathname, location.search);
  const [path = '', search = ''] = location.hash.slice(1).split('?');
  return parseRoute(path, search);
}

const store = new Store<{ route: Route }>({ route: current() });
const reread = () => store.set({ route: current() });
window.addEventListener('popstate', reread);
window.addEventListener('hashchange', reread);

export const routeNow = (): Route => store.get().route;
export const useRoute = (): Route => useStore(store, (s) => s.route);

/** go shows another place. Replacing is for places that the person does not want to go back to. */
export function go(route: Partial<Route>, how: 'push' | 'replace' = 'push'): void {
  const address = exported ? `#${formatRoute(route)}` : formatRoute(route);
  if (how === 'push') history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  reread();
}

/** select changes what the person looks at, and leaves run, view and moment as they are. */
export function select(selection: Selection): void {
  const { run, view, at } = routeNow();
  go({ run, view, at, ...selection });
}
