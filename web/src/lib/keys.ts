import { useEffect } from 'react';
import { nextNeed } from '../store/needs';
import { ui } from '../store/ui';
import { exported, go, routeNow, select, views } from './route';

/** typing is whether a key belongs to a field that the person writes in. */
function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The keys that work everywhere. Help shows the same list. */
export const shortcuts: [string, string][] = [
  ['Ctrl K', 'do anything: search runs, agents and commands'],
  ['n', 'the next thing that needs you'],
  ['/', 'search runs'],
  ['1 … 5', 'graph, timeline, conversation, board, review'],
  ['j k', 'the next and the previous agent'],
  ['[ ]', 'the turn before and the turn after'],
  ['m', 'write to the selected agent'],
  ['Esc', 'close what is open'],
  ['?', 'these keys'],
];

/** useShortcuts listens to the keys of the whole page. */
export function useShortcuts(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        ui.set({ palette: !ui.get().palette });
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || ui.get().palette || ui.get().dialog) return;
      if (typing(event.target)) return;
      if (act(event.key)) event.preventDefault();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
}

/** act does what a key says, and returns whether it means anything here. */
function act(key: string): boolean {
  const route = routeNow();
  if (key === 'n' && !exported) return nextNeed(), true;
  if (key === '?') return ui.set({ dialog: { kind: 'help' } }), true;
  if (key === '/' && !exported) {
    if (route.run) go({});
    setTimeout(() => document.getElementById('search')?.focus());
    return true;
  }
  if (!route.run) return false;
  const view = views[Number(key) - 1];
  if (view) return go({ ...route, view }), true;
  if (key === 'Escape') return select({}), true;
  if (key === 'm') return focusMessage(), true;
  if (key === 'j' || key === 'k' || key === '[' || key === ']') {
    window.dispatchEvent(new CustomEvent('swarm:step', { detail: key }));
    return true;
  }
  return false;
}

function focusMessage(): void {
  document.getElementById('message')?.focus();
}
