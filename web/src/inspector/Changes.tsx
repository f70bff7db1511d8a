import type { Artifact, Turn } from '../api/types';
import { DiffList } from '../review/DiffList';
import { useFeatures } from '../store/features';
import { ArtifactItem } from '../views/ArtifactItem';

/** Changes shows the files that a turn changed, and the artifacts of its agent. */
export function Changes({ run, turn, artifacts }: { run: string; turn?: Turn; artifacts: Artifact[] }) {
  const can = useFeatures();
  return (
    <>
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
