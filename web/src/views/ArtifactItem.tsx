import { useState } from 'react';
import type { Artifact } from '../api/types';
import { bytes, clockOf, excerpt } from '../lib/format';
import { exportedRun } from '../store/exported';
import { LongText } from '../inspector/LongText';

const mostShown = 2_000_000;

/** ArtifactItem is one artifact. Its bytes are read when it is opened, and shown as text. */
export function ArtifactItem({ run, artifact }: { run: string; artifact: Artifact }) {
  const [text, setText] = useState<string>();
  const open = async () => {
    if (text !== undefined) return;
    setText(await read(run, artifact).catch(() => 'The artifact cannot be read.'));
  };
  return (
    <li className="artifact">
      <details onToggle={(event) => event.currentTarget.open && void open()}>
        <summary>
          <code title={artifact.ref}>{excerpt(artifact.name || artifact.ref, 120)}</code> <span className="dim small">{artifact.kind}</span> <span className="dim small num">{bytes(artifact.bytes)}</span>{' '}
          <span className="dim small">
            {artifact.agent} {clockOf(artifact.time)}
          </span>
        </summary>
        {text !== undefined && <LongText text={text} label={artifact.ref} />}
      </details>
    </li>
  );
}

async function read(run: string, artifact: Artifact): Promise<string> {
  const path = artifact.ref.replace(/^[a-z]+:\/\//, ''); // KIND/ID; the name is only what it is called
  const past = exportedRun();
  if (past) return past.artifacts?.[path] ?? 'This file has no copy of the artifact.';
  if (artifact.bytes > mostShown) return `The artifact has ${bytes(artifact.bytes)}: too much to show here.`;
  const parts = [run, 'artifacts', ...path.split('/')].map(encodeURIComponent);
  const answer = await fetch(`/api/v1/runs/${parts.join('/')}`);
  if (!answer.ok) throw new Error();
  return answer.text();
}
