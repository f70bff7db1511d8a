import type { Envelope, Report } from '../api/types';
import { ago, clockOf, visible } from '../lib/format';
import { useNow } from '../lib/now';
import { select } from '../lib/route';
import { editedWords, receiptSigns, receiptWords } from '../lib/status';
import { useFeatures } from '../store/features';
import { ui } from '../store/ui';
import { LongText } from './LongText';

/** Mail shows what an agent got and what it sent, each with its receipt, and the raw envelope on demand. */
export function Mail({ report, agent, message }: { report: Report; agent: string; message?: string }) {
  const now = useNow(5000);
  const forks = useFeatures().fork && report.run.kind !== 'line';
  const incoming = report.envelopes.filter((one) => one.toNodeId === agent).toReversed();
  const outgoing = report.envelopes.filter((one) => one.fromNodeId === agent).toReversed();
  return (
    <>
      <h3>
        Incoming <span className="dim">{incoming.length}</span>
      </h3>
      <List envelopes={incoming} message={message} now={now} forks={forks} />
      <h3>
        Outgoing <span className="dim">{outgoing.length}</span>
      </h3>
      <List envelopes={outgoing} message={message} now={now} forks={forks} />
    </>
  );
}

const most = 200;

function List({ envelopes, message, now, forks }: { envelopes: Envelope[]; message?: string; now: number; forks: boolean }) {
  if (envelopes.length === 0) return <p className="dim">None.</p>;
  return (
    <ul className="mail">
      {envelopes.slice(0, most).map((one) => (
        <EnvelopeItem key={`${one.fromNodeId} ${one.id}`} envelope={one} open={one.id === message} now={now} forks={forks} />
      ))}
      {envelopes.length > most && <li className="dim">and {envelopes.length - most} older ones: the conversation has them.</li>}
    </ul>
  );
}

function EnvelopeItem({ envelope, open, now, forks }: { envelope: Envelope; open: boolean; now: number; forks: boolean }) {
  const { receipt, payload } = envelope;
  const { turn } = receipt;
  const age = receipt.state === 'stored' ? `unread for ${ago(receipt.stored ?? envelope.createdAt, now).replace(/ ago$/, '')}` : clockOf(envelope.createdAt);
  return (
    <li className={open ? 'envelope-item open' : 'envelope-item'}>
      <div className="row small">
        <span title={receiptWords[receipt.state]} role="img" aria-label={receiptWords[receipt.state]} className={receipt.state === 'undeliverable' ? 'tone-bad' : 'tone-active'}>
          {receiptSigns[receipt.state]}
        </span>
        <span>
          {envelope.fromNodeId} → {envelope.toNodeId}
        </span>
        <span className="dim">{age}</span>
        {receipt.edited && (
          <span className="tone-wait" title="The text was changed when this run was forked">
            {editedWords(receipt)}
          </span>
        )}
        {receipt.overdue && <span className="tone-wait">reply overdue</span>}
        <span className="grow" />
        {turn && (
          <button className="linklike" onClick={() => select({ turn })} title="the turn that read it">
            {turn}
          </button>
        )}
        {turn && forks && (
          <button className="quiet small" onClick={() => ui.set({ dialog: { kind: 'fork', turn, message: envelope.id } })} title="Start a new run in which this turn reads another text">
            Edit in a fork
          </button>
        )}
      </div>
      <LongText text={payload.message} label="Message" />
      <details open={open}>
        <summary className="dim small">raw envelope</summary>
        <pre className="raw">{visible(JSON.stringify(envelope, null, 2).slice(0, 60_000))}</pre>
      </details>
    </li>
  );
}
