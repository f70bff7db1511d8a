import { useMemo, useState } from 'react';
import type { Report } from '../api/types';
import { exported, useRoute } from '../lib/route';
import { comments, reviewText, takeComments } from '../review/comments';
import { DiffList } from '../review/DiffList';
import { sendMessage } from '../store/actions';
import { runStore } from '../store/run';
import { useStore } from '../store/store';
import { useTurn } from '../store/turns';
import { LongText } from '../inspector/LongText';

/** Review shows what turns changed. Comments on lines become one message to the author. */
export function Review() {
  const report = useStore(runStore, (s) => s.report);
  return report ? <Page report={report} /> : null;
}

function Page({ report }: { report: Report }) {
  const route = useRoute();
  const turns = useMemo(() => report.turns.filter((turn) => turn.status !== 'running'), [report]);
  const [left, setLeft] = useState<string>();
  const [right, setRight] = useState('');
  const chosen = left ?? route.turn ?? '';
  const turn = report.turns.find((one) => one.id === chosen);
  return (
    <div className="review">
      <div className="row review-tools">
        <label>
          Changes of{' '}
          <select value={chosen} onChange={(event) => setLeft(event.target.value)}>
            <option value="">the whole run</option>
            {turns.map((one) => (
              <option key={one.id}>{one.id}</option>
            ))}
          </select>
        </label>
        <label>
          beside{' '}
          <select value={right} onChange={(event) => setRight(event.target.value)} disabled={!turn}>
            <option value="">nothing</option>
            {turns
              .filter((one) => one.id !== chosen)
              .map((one) => (
                <option key={one.id}>{one.id}</option>
              ))}
          </select>
        </label>
        <span className="grow" />
        {!exported && <SendReview report={report} />}
      </div>
      {right && turn ? (
        <div className="beside">
          <Attempt report={report} turn={chosen} />
          <Attempt report={report} turn={right} />
        </div>
      ) : (
        <DiffList run={report.run.id} turn={chosen || undefined} author={turn?.agent} status={turn?.status ?? String(report.run.seq)} />
      )}
    </div>
  );
}

/** Attempt is one of two turns that are compared: its output and its changes. */
function Attempt({ report, turn }: { report: Report; turn: string }) {
  const found = report.turns.find((one) => one.id === turn);
  const full = useTurn(report.run.id, turn, found?.status);
  return (
    <section aria-label={turn}>
      <h2>
        {turn} <span className="dim">{found?.status}</span>
      </h2>
      {full.value && <LongText text={full.value.output_text} label={`Output of ${turn}`} />}
      <DiffList run={report.run.id} turn={turn} author={found?.agent} status={found?.status} narrow />
    </section>
  );
}

function SendReview({ report }: { report: Report }) {
  const list = useStore(comments, (s) => s.list);
  const mine = list.filter((one) => one.run === report.run.id);
  const authors = [...new Set(mine.map((one) => one.author))];
  return (
    <>
      {authors.map((author) => {
        const own = mine.filter((one) => one.author === author);
        return (
          <button key={author} className="primary" onClick={() => void sendMessage(report.run.id, author, reviewText(own), 'queue').then((ok) => ok && takeComments(report.run.id, author))}>
            Send {own.length} {own.length === 1 ? 'comment' : 'comments'} to {author}
          </button>
        );
      })}
    </>
  );
}
