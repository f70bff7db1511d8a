import { useRef, type ReactNode } from 'react';
import { shortcuts } from '../lib/keys';
import { useStore } from '../store/store';
import { ui } from '../store/ui';
import { useModal } from './modal';
import { ForkForm } from './ForkForm';
import { StartForm } from './StartForm';

const close = () => ui.set({ dialog: undefined });

/** Dialogs shows the dialog that is open. */
export function Dialogs() {
  const dialog = useStore(ui, (s) => s.dialog);
  if (!dialog) return null;
  if (dialog.kind === 'start') return <Modal title="Start a run"><StartForm close={close} /></Modal>;
  if (dialog.kind === 'fork') return <Modal title={`Fork from ${dialog.turn}`}><ForkForm turn={dialog.turn} message={dialog.message} close={close} /></Modal>;
  return (
    <Modal title="Keys">
      <table className="keys">
        <tbody>
          {shortcuts.map(([key, what]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Modal>
  );
}

/** Modal is a dialog of the browser: it keeps the focus inside, and Escape closes it. */
function Modal({ title, children }: { title: string; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null);
  useModal(ref, close);
  return (
    <dialog ref={ref} className="modal" aria-label={title} onClick={(event) => event.target === ref.current && close()}>
      <div className="modal-inner">
        <header>
          <h2>{title}</h2>
          <button className="quiet icon" onClick={close} aria-label="Close">
            ×
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
