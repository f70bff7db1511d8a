import { go, routeNow } from '../lib/route';
import { needsOf, runsStore } from './runs';
import { runStore } from './run';
import { tell } from './ui';

/** A Place is something that waits for the person, and where it is shown. */
interface Place {
  run: string;
  key: string;
  agent?: string;
}

/** places lists what waits for the person: first in the run that is shown, then in the others. */
function places(): Place[] {
  const here = runStore.get();
  const found: Place[] = [];
  if (here.id && routeNow().run) {
    for (const approval of here.report?.run.approvals ?? []) {
      if (!approval.auto) found.push({ run: here.id, key: approval.id, agent: approval.agent });
    }
  }
  for (const run of runsStore.get().runs) {
    for (const need of needsOf(run)) {
      const key = need.id ?? `${need.kind} ${need.agent ?? ''}`;
      if (!found.some((one) => one.run === run.id && one.key === key)) found.push({ run: run.id, key, agent: need.agent });
    }
  }
  return found;
}

let shown = '';

/** nextNeed shows the next thing that waits for the person, and begins anew after the last one. */
export function nextNeed(): void {
  const all = places();
  if (all.length === 0) return tell('Nothing needs you.');
  const at = all.findIndex((one) => `${one.run} ${one.key}` === shown);
  const next = all[(at + 1) % all.length];
  if (!next) return;
  shown = `${next.run} ${next.key}`;
  go({ run: next.run, agent: next.agent, view: routeNow().run === next.run ? routeNow().view : 'graph' });
  focusWhenThere(`need-${next.key}`, 20);
}

/** focusWhenThere moves the focus to an element as soon as it is drawn. */
function focusWhenThere(id: string, tries: number): void {
  const element = document.getElementById(id);
  if (element) {
    element.focus();
    element.scrollIntoView({ block: 'nearest' });
  } else if (tries > 0) {
    setTimeout(() => focusWhenThere(id, tries - 1), 100);
  }
}
