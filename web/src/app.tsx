import { useEffect } from 'react';
import { useRoute, exported, routeNow, go } from './lib/route';
import { useTheme } from './lib/theme';
import { useShortcuts } from './lib/keys';
import { session } from './store/session';
import { exportedRun } from './store/exported';
import { learnFeatures } from './store/features';
import { search, watchRuns } from './store/runs';
import { useStore } from './store/store';
import { Gate } from './views/Gate';
import { Palette } from './views/Palette';
import { RunPage } from './views/RunPage';
import { Runs } from './views/Runs';
import { Toasts } from './views/Toasts';
import { Dialogs } from './views/Dialogs';

/** App shows the way in, the list of runs, or one run. */
export function App() {
  const route = useRoute();
  const state = useStore(session, (s) => s.state);
  useTheme();
  useShortcuts();
  useEffect(() => {
    const past = exportedRun();
    if (exported && past && !routeNow().run) go({ run: past.report.run.id }, 'replace');
  }, []);
  useEffect(() => {
    if (exported || state !== 'in') return;
    void search('');
    void learnFeatures();
    return watchRuns();
  }, [state]);
  if (state === 'entering') return <div className="gate" role="status" />;
  if (state === 'out') return <Gate />;
  return (
    <>
      {route.run ? <RunPage id={route.run} at={route.at} key={route.run} /> : !exported && <Runs />}
      <Palette />
      <Dialogs />
      <Toasts />
    </>
  );
}
