import type { Agent } from '../api/types';
import { count } from '../lib/format';

/** ContextGauge shows how much of its model's context an agent uses. A model with an unknown window has no gauge. */
export function ContextGauge({ context }: { context?: Agent['context'] }) {
  if (!context?.window) return null;
  const share = Math.min(1, context.tokens / context.window);
  const percent = Math.round(share * 100);
  return (
    <span className="context" role="meter" aria-label="Context used" aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent} title={`${count(context.tokens)} of ${count(context.window)} tokens`}>
      <span className={share > 0.8 ? 'full' : ''} style={{ width: `${percent}%` }} />
    </span>
  );
}
