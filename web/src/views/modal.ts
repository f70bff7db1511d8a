import { useLayoutEffect, type RefObject } from 'react';

/**
 * useModal opens a dialog of the browser, with the focus on its first field, and says when the person has closed it. The
 * dialog is closed before it is taken away, so that the focus goes back to where it was.
 */
export function useModal(dialog: RefObject<HTMLDialogElement | null>, closed: () => void): void {
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!element) return;
    const tell = () => !element.open && closed();
    element.addEventListener('close', tell);
    element.showModal();
    element.querySelector<HTMLElement>('input, select, textarea:enabled')?.focus();
    return () => {
      element.removeEventListener('close', tell);
      element.close();
    };
  }, []);
}
