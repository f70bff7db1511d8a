import { BaseEdge, EdgeLabelRenderer, getBezierPath, useStore as useFlow, type EdgeProps } from '@xyflow/react';
import type { Flight } from '../store/run';
import type { Arrow } from './model';

/** MailEdge is an allowed path, or a dependency. An envelope that was just sent is seen travelling along it. */
export function MailEdge(props: EdgeProps) {
  const { id, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, markerEnd, markerStart } = props;
  const arrow = props.data?.arrow as Arrow;
  const flights = (props.data?.flights ?? []) as Flight[];
  const [path, labelX, labelY] = getBezierPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition });
  const far = useFlow((state) => state.transform[2] < 0.5);
  const label = far ? undefined : (arrow.label ?? (arrow.handoffs > 0 ? String(arrow.handoffs) : undefined));
  return (
    <>
      <BaseEdge id={id} path={path} markerEnd={markerEnd} markerStart={markerStart} className={`edge ${String(props.data?.look ?? '')} ${flights.length > 0 ? 'busy' : arrow.handoffs > 0 ? 'used' : ''}`} />
      {flights.map((flight) => (
        <g key={flight.id} className="envelope" data-flight={`${flight.from} ${flight.to}`}>
          <path d="M-8 -5.5h16v11h-16z M-8 -5.5l8 6l8 -6" />
          <animateMotion dur="1s" fill="freeze" path={path} keyPoints={flight.from === arrow.from ? '0;1' : '1;0'} keyTimes="0;1" calcMode="linear" />
        </g>
      ))}
      {label && (
        <EdgeLabelRenderer>
          <div className="edge-label num" style={{ transform: `translate(-50%, -50%) translate(${labelX}px, ${labelY}px)` }} title={arrow.label ? 'condition' : 'messages sent along this edge'}>
            {label}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
}
