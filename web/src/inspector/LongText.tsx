import { useState } from 'react';
import { bytes, visible } from '../lib/format';

const step = 60_000;
const line = 4_000;

/** soft breaks lines that are longer than a browser lays out quickly. */
function soft(text: string): string {
  if (text.length <= line) return text;
  return text
    .split('\n')
    .map((one) => (one.length <= line ? one : (one.match(/[\s\S]{1,4000}/g) ?? []).join('\n')))
    .join('\n');
}

/** LongText shows a text of any size as characters: its beginning, or of a running turn its end, and more on demand. */
export function LongText({ text, end, label }: { text: string; end?: boolean; label: string }) {
  const [most, setMost] = useState(step);
  const part = end ? text.slice(-most) : text.slice(0, most);
  const left = text.length - part.length;
  const more = left > 0 && (
    <button className="quiet small" onClick={() => setMost(most + 4 * step)}>
      {bytes(left)} {end ? 'before' : 'after'} this are not shown. Show more
    </button>
  );
  return (
    <div className="long-text">
      {end && more}
      <pre aria-label={label}>{soft(visible(part))}</pre>
      {!end && more}
    </div>
  );
}
