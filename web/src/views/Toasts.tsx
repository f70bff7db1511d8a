import { useStore } from '../store/store';
import { dismiss, ui } from '../store/ui';
import { Link } from './Parts';

/** Toasts are sentences about what the person did, read out by screen readers. */
export function Toasts() {
  const toasts = useStore(ui, (s) => s.toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <div key={toast.id} className={toast.bad ? 'toast bad' : 'toast'}>
          <div>
            {toast.text}
            {toast.hint && <div className="dim">{toast.hint}</div>}
            {toast.link && (
              <Link to={toast.link.to} className="linklike">
                {toast.link.title}
              </Link>
            )}
          </div>
          <button className="quiet icon" onClick={() => dismiss(toast.id)} aria-label="Dismiss">
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
