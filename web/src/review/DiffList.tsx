import type { DiffFile } from '../api/types';
import { excerpt } from '../lib/format';
import { loadDiff } from '../store/diff';
import { useLoaded } from '../store/turns';
import { FileDiff } from './FileDiff';

/** DiffList shows the files that a turn, or a whole run, changed. */
export function DiffList({ run, turn, author, status, narrow }: { run: string; turn?: string; author?: string; status?: string; narrow?: boolean }) {
  const loaded = useLoaded(`${run} ${turn ?? ''} ${status ?? ''}`, (signal) => loadDiff(run, turn, signal), turn ?? run);
  if (loaded.problem)
    return (
      <p className="dim">
        {loaded.problem.message}
        {loaded.problem.hint && <span className="small"> · {loaded.problem.hint}</span>}
      </p>
    );
  if (!loaded.value) return <p className="dim">Reading the changes…</p>;
  const { files } = loaded.value;
  if (files.length === 0) return <p className="dim">No file was changed.</p>;
  return (
    <>
      {files.map((file) => (
        <details key={file.path} className="file" open={files.length <= 12}>
          <summary>
            <FileMark status={file.status} /> <code>{excerpt(file.path, 160)}</code> {file.from && <span className="dim">from {excerpt(file.from, 120)}</span>}
          </summary>
          <FileDiff file={file} author={author} turn={turn} narrow={narrow} />
        </details>
      ))}
    </>
  );
}

const marks: Record<string, [string, string]> = { added: ['+', 'good'], modified: ['~', 'wait'], deleted: ['−', 'bad'], renamed: ['→', 'wait'] };

function FileMark({ status }: { status: DiffFile['status'] }) {
  const [sign, tone] = marks[status] ?? ['~', 'wait'];
  return (
    <span className={`tone-${tone}`} role="img" aria-label={status}>
      {sign}
    </span>
  );
}
