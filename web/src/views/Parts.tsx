import type { ReactNode } from 'react';
import type { Refusal } from '../api/client';
import { go, formatRoute, exported, type Route } from '../lib/route';
import { nextTheme, useThemeName } from '../lib/theme';
import { signOf, toneOf } from '../lib/status';
import { ui } from '../store/ui';

/** Sign is a status as one character, with its word for screen readers and pointers. */
export function Sign({ status, silent }: { status?: string; silent?: boolean }) {
  return (
    <span className={`sign tone-${toneOf(status)}`} data-status={status} title={status} {...(silent ? { 'aria-hidden': true } : { role: 'img', 'aria-label': status ?? 'unknown' })}>
      {signOf(status)}
    </span>
  );
}

/** Badge is a status as sign and word. */
export function Badge({ status, children }: { status?: string; children?: ReactNode }) {
  return (
    <span className={`badge tone-${toneOf(status)}`}>
      <span aria-hidden="true">{signOf(status)}</span> {children ?? status}
    </span>
  );
}

/** Link goes to a place of the page without loading it anew. */
export function Link({ to, children, ...rest }: { to: Partial<Route>; children: ReactNode } & Omit<React.AnchorHTMLAttributes<HTMLAnchorElement>, 'href'>) {
  return (
    <a
      {...rest}
      href={exported ? `#${formatRoute(to)}` : formatRoute(to)}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        rest.onClick?.(event);
        go(to);
      }}
    >
      {children}
    </a>
  );
}

export function Progress({ done, total, label }: { done: number; total: number; label: string }) {
  return (
    <span className="progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={total} aria-valuenow={done}>
      <span style={{ width: `${total > 0 ? (100 * done) / total : 0}%` }} />
    </span>
  );
}

const themeSigns = { system: '◐', light: '☀', dark: '☾' };

/** Tools are the buttons at the right of every page's top. */
export function Tools() {
  const theme = useThemeName();
  return (
    <>
      <button className="quiet" onClick={() => ui.set({ palette: true })} aria-keyshortcuts="Control+K" title="Do anything (Ctrl K)">
        <span aria-hidden="true">⌕</span> <kbd className="wide-only">Ctrl K</kbd>
        <span className="only-read">Open the palette</span>
      </button>
      <button className="quiet icon" onClick={nextTheme} aria-label={`Colours: ${theme}`} title={`Colours: ${theme}`}>
        {themeSigns[theme]}
      </button>
      <button className="quiet icon" onClick={() => ui.set({ dialog: { kind: 'help' } })} aria-label="Keys" title="Keys (?)">
        ?
      </button>
    </>
  );
}

/** Refused says what the server refused, and what to do instead. */
export function Refused({ problem }: { problem?: Refusal }) {
  if (!problem) return null;
  return (
    <div className="refusal" role="alert">
      <p>{problem.message}</p>
      {problem.hint && <p className="dim">{problem.hint}</p>}
    </div>
  );
}

/** Empty says why there is nothing to see, and what to do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}
