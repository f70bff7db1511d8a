import { Handle, Position, useStore as useFlow, type NodeProps } from '@xyflow/react';
import { memo } from 'react';
import { ContextGauge } from '../inspector/ContextGauge';
import { cost, excerpt } from '../lib/format';
import { whyOf } from '../lib/why';
import { Sign } from '../views/Parts';
import type { Card } from './model';

/** distanceOf is how far away cards are: the farther, the fewer and the larger are their words. */
const distanceOf = (zoom: number) => (zoom < 0.5 ? 'far' : zoom < 0.8 ? 'middle' : 'near');

/** AgentCard is a node of the graph. From far away it shows its name and status only. */
export const AgentCard = memo(function AgentCard({ data, selected }: NodeProps) {
  const card = data.card as Card;
  const distance = useFlow((state) => distanceOf(state.transform[2]));
  const far = distance === 'far';
  const { live } = card;
  const why = whyOf(live?.waits ?? card.task?.waits);
  return (
    <div className={`card${selected ? ' selected' : ''}${data.receives ? ' receives' : ''} ${distance}`} data-agent={card.id} data-status={card.status} title={far ? `${card.title}, ${card.status}` : undefined}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <div className="card-head">
        <Sign status={card.status} />
        <span className="card-title">{excerpt(card.title, 60)}</span>
        {live && !far && (
          <span className={`connection ${live.connection}`} role="img" aria-label={live.connection} title={live.connection} />
        )}
      </div>
      {!far && (
        <>
          {distance === 'near' && <div className="card-sub dim">{excerpt(card.sub, 60)}</div>}
          <div className="card-line">
            <span>{card.asks ? 'waits for you' : live?.stream ? `${live.stream}…` : why ? excerpt(why, 60) : (card.task?.doing ?? card.status)}</span>
          </div>
          <div className="card-foot num dim">
            <span>{cost(live?.usage ?? card.task?.usage)}</span>
            {live?.inbox && live.inbox.unread > 0 && <span title="unread messages">✉ {live.inbox.unread}</span>}
            <ContextGauge context={live?.context} />
          </div>
        </>
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
});
