import { useMemo, useState } from 'react';
import type { FullTurn, Span } from '../api/types';
import { bytes } from '../lib/format';
import { LongText } from './LongText';

interface Part {
  text: string;
  from: string;
  name?: string;
  known?: boolean;
}

/** partsOf cuts a prompt at its spans. A span counts bytes of UTF-8, not characters. */
export function partsOf(text: string, spans: Span[]): Part[] {
  const all = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const parts: Part[] = [];
  let at = 0;
  const cut = (to: number, from: string, span?: Span) => {
    if (to > at) parts.push({ text: decoder.decode(all.subarray(at, to)), from, name: span?.name ?? span?.turn, known: span?.known });
    at = Math.max(at, to);
  };
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    cut(Math.min(span.start, all.length), 'template');
    cut(Math.min(span.end, all.length), span.from, span);
  }
  cut(all.length, 'template');
  return parts;
}

const colours = 8;

/** Prompt shows the full prompt of a turn with its parts coloured by origin, or only what was new to the session. */
export function Prompt({ full }: { full?: FullTurn }) {
  const [delta, setDelta] = useState(false);
  const parts = useMemo(() => (full ? partsOf(full.prompt_text, full.spans ?? []) : []), [full]);
  if (!full) return <p className="dim">There is no prompt to show.</p>;
  const origins = [...new Set(parts.filter((part) => part.text.trim() !== '').map((part) => part.from))];
  return (
    <>
      <div className="row small">
        <div className="segmented" role="radiogroup" aria-label="Which prompt">
          <button role="radio" aria-checked={!delta} onClick={() => setDelta(false)}>
            Full
          </button>
          <button role="radio" aria-checked={delta} onClick={() => setDelta(true)} disabled={full.sent_text === undefined} title={full.sent_text === undefined ? 'All of it was sent' : 'What was new to the session, and all that was sent'}>
            Delta
          </button>
        </div>
        <span className="dim num">{bytes(full.prompt_bytes)}</span>
        <code className="hash" title={`SHA-256 ${full.prompt}`}>
          {full.prompt.slice(0, 12)}
        </code>
      </div>
      {delta && full.sent_text !== undefined ? (
        <LongText text={full.sent_text} label="Delta of the prompt" />
      ) : (
        <>
          <ul className="legend small" aria-label="Origins">
            {origins.map((origin) => (
              <li key={origin}>
                <span className={`swatch origin-${origins.indexOf(origin) % colours}`} /> {origin}
              </li>
            ))}
          </ul>
          {parts.map((part, index) => (
            part.text.trim() === '' ? <div key={index} className="span-gap" /> : <section key={index} className={`span origin-${origins.indexOf(part.from) % colours}${part.known ? ' known' : ''}`} title={[part.from, part.name, part.known ? 'known to the session, not sent again' : ''].filter(Boolean).join(' · ')}>
              <LongText text={part.text} label={`Part from ${part.from}${part.name ? ` ${part.name}` : ''}`} />
            </section>
          ))}
        </>
      )}
      {(full.injected_text ?? []).map((text, index) => (
        <section key={index} className="span injected">
          <p className="dim small">given between two tools</p>
          <LongText text={text} label="Mail that it was given between two tools" />
        </section>
      ))}
    </>
  );
}
