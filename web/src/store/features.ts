import { exported } from '../lib/route';
import { Store, useStore } from './store';

/**
 * Features are what the server can do, by its own description. The page shows no button that leads nowhere. The slider has
 * its place from the beginning, so that nothing moves when the description comes.
 */
export interface Features {
  past: boolean;
  diff: boolean;
  fork: boolean;
  export: boolean;
}

export const features = new Store<Features>({ past: !exported, diff: exported, fork: false, export: false });

interface Description {
  paths: Record<string, { parameters?: unknown[]; get?: { parameters?: { name?: string }[] } }>;
}

/** learnFeatures reads the OpenAPI document of the server. */
export async function learnFeatures(): Promise<void> {
  const answer = await fetch('/openapi.json').catch(() => undefined);
  if (!answer?.ok) return;
  const { paths } = (await answer.json()) as Description;
  features.set({
    past: (paths['/api/v1/runs/{id}']?.get?.parameters ?? []).some((one) => one.name === 'at'),
    diff: '/api/v1/runs/{id}/diff' in paths,
    fork: '/api/v1/runs/{id}/fork' in paths,
    export: '/api/v1/runs/{id}/export' in paths,
  });
}

export const useFeatures = (): Features => useStore(features, (s) => s);
