import { useSyncExternalStore } from 'react';

const large = matchMedia('(min-width: 2800px)');

/** useScale returns how much larger texts are on a 4K screen that has no scaling of its own. The style sheets ask for the same width. */
export const useScale = (): number =>
  useSyncExternalStore(
    (changed) => {
      large.addEventListener('change', changed);
      return () => large.removeEventListener('change', changed);
    },
    () => (large.matches ? 1.4 : 1),
  );
