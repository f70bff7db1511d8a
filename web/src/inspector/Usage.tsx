import type { Agent, Turn, Usage as Used } from '../api/types';
import { cost, count, tokens } from '../lib/format';
import { ContextGauge } from './ContextGauge';

/** Usage shows what the turn and the agent have used, and how full the context is. */
export function Usage({ agent, turn, turns }: { agent?: Agent; turn?: Turn; turns: Turn[] }) {
  const most = Math.max(1, ...turns.map((one) => tokens(one.usage)));
  return (
    <>
      <table className="usage num">
        <thead>
          <tr>
            <th />
            <th scope="col">this turn</th>
            <th scope="col">agent</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([label, of]) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td>{of(turn?.usage)}</td>
              <td>{of(agent?.usage)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {agent?.context && (
        <p className="row">
          Context: {count(agent.context.tokens)} tokens{agent.context.window ? ` of ${count(agent.context.window)}` : ''} <ContextGauge context={agent.context} />
        </p>
      )}
      {turns.some((one) => tokens(one.usage) > 0) && (
        <>
          <h3>Tokens per turn</h3>
          <ul className="bars">
            {turns.slice(-40).map((one) => (
              <li key={one.id}>
                <span className="dim">{one.id}</span>
                <span className="bar">
                  <span style={{ width: `${(100 * tokens(one.usage)) / most}%` }} />
                </span>
                <span className="num">{count(tokens(one.usage))}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

const rows: [string, (usage?: Used) => string][] = [
  ['turns', (usage) => String(usage?.calls ?? '')],
  ['input tokens', (usage) => (usage?.input_tokens ? count(usage.input_tokens) : '')],
  ['of them cached', (usage) => (usage?.cached_tokens ? count(usage.cached_tokens) : '')],
  ['output tokens', (usage) => (usage?.output_tokens ? count(usage.output_tokens) : '')],
  ['cost', (usage) => (usage?.usd ? cost(usage) : '')],
];
