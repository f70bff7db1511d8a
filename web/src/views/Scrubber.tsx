import { useEffect, useRef, useState } from 'react';
import { clockOf } from '../lib/format';
import { go, routeNow } from '../lib/route';
import { runStore } from '../store/run';
import { useStore } from '../store/store';

/** Scrubber shows the run at any past moment. Its end is now. */
export function Scrubber() {
  const last = useStore(runStore, (s) => s.last);
  const at = useStore(runStore, (s) => s.at);
  const time = useStore(runStore, (s) => s.report?.run.time);
  const [value, setValue] = useState<number>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setValue(undefined), [at]);
  const shown = value ?? at ?? last;
  const move = (to: number) => {
    setValue(to);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go({ ...routeNow(), at: to >= last ? undefined : to }, at === undefined ? 'push' : 'replace'), 80);
  };
  return (
    <section className={at === undefined ? 'scrubber' : 'scrubber past'} aria-label="Moment of the run">
      <label className="only-read" htmlFor="moment">
        Moment of the run, by event
      </label>
      <button className="quiet icon" aria-label="One event back" onClick={() => move(Math.max(1, shown - 1))}>
        ‹
      </button>
      <input id="moment" type="range" min={1} max={Math.max(1, last)} value={Math.min(shown, last)} onChange={(event) => move(Number(event.target.value))} aria-valuetext={`event ${shown} of ${last}`} />
      <button className="quiet icon" aria-label="One event on" onClick={() => move(Math.min(last, shown + 1))} disabled={at === undefined}>
        ›
      </button>
      <span className="num dim scrubber-label">
        {at === undefined ? `event ${last}` : `event ${shown} of ${last}`} · {clockOf(time)}
      </span>
      {at !== undefined && (
        <button className="primary small" onClick={() => go({ ...routeNow(), at: undefined })}>
          Now
        </button>
      )}
    </section>
  );
}
