import type { Artifact, Turn } from '../api/types';
import { exported, useRoute } from '../lib/route';
import { DiffList } from '../review/DiffList';
import { useFeatures } from '../store/features';
import { ArtifactItem } from '../views/ArtifactItem';
import { Link } from '../views/Parts';

/** Changes shows the files that a turn changed, and the artifacts of its agent. There is no room for two sides: Review has it. */
export function Changes({ run, turn, artifacts }: { run: string; turn?: Turn; artifacts: Artifact[] }) {
  const can = useFeatures();
  const route = useRoute();
  return (
    <>
      {can.diff && turn && !exported && (
        <p className="small wide-only">
          <Link to={{ ...route, view: 'review', agent: undefined, message: undefined, turn: turn.id }} className="linklike">
            Side by side, with comments
          </Link>
        </p>
      )}
      {can.diff && turn && <DiffList run={run} turn={turn.id} author={turn.agent} status={turn.status} narrow />}
      {artifacts.length > 0 && <h3>Artifacts</h3>}
      <ul className="plain">
        {artifacts.map((artifact) => (
          <ArtifactItem key={`${artifact.ref} ${artifact.seq}`} run={run} artifact={artifact} />
        ))}
      </ul>
    </>
  );
}
