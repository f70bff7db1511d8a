import { useEffect } from 'react';
import { Store, useStore } from '../store/store';

export type Theme = 'system' | 'light' | 'dark';
const key = 'swarm:theme';

const read = (): Theme => {
  const kept = keep.read(key);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
};

/** keep stores the person's settings in the browser. A page without storage works too, and forgets them. */
export const keep = {
  read(name: string): string | null {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  write(name: string, value: string): void {
    try {
      localStorage.setItem(name, value);
    } catch {
      // There is no storage, or it is full.
    }
  },
};

const store = new Store<{ theme: Theme }>({ theme: read() });

export const useThemeName = (): Theme => useStore(store, (s) => s.theme);

export function nextTheme(): void {
  const order: Theme[] = ['system', 'light', 'dark'];
  const theme = order[(order.indexOf(store.get().theme) + 1) % order.length] ?? 'system';
  keep.write(key, theme);
  store.set({ theme });
}

const prefersDark = matchMedia('(prefers-color-scheme: dark)');

/** isDark is whether the page is dark now, for libraries that ask. */
export function useDark(): boolean {
  const theme = useThemeName();
  return theme === 'dark' || (theme === 'system' && prefersDark.matches);
}

export function useTheme(): void {
  const theme = useThemeName();
  useEffect(() => {
    const apply = () => {
      const dark = theme === 'dark' || (theme === 'system' && prefersDark.matches);
      document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    };
    apply();
    prefersDark.addEventListener('change', apply);
    return () => prefersDark.removeEventListener('change', apply);
  }, [theme]);
}
