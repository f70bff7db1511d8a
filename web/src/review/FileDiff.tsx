import { DiffFile as Model, DiffModeEnum, DiffView, SplitSide, setEnableFastDiffTemplate } from '@git-diff-view/react';
import '@git-diff-view/react/styles/diff-view-pure.css';
import { useMemo, useState } from 'react';
import type { DiffFile } from '../api/types';
import { visible } from '../lib/format';
import { useRoute } from '../lib/route';
import { useDark } from '../lib/theme';
import { useStore } from '../store/store';
import { comments, setComment, type Comment } from './comments';

// Without this the library writes lines as HTML text. Lines of agents are only ever drawn as text nodes.
setEnableFastDiffTemplate(false);

const mostLine = 2_000;
const mostColoured = 200_000;

/** safe keeps a patch drawable: control characters are visible, and long lines are cut. */
const safe = (text: string) =>
  text
    .split('\n')
    .map((line) => visible(line.length > mostLine ? `${line.slice(0, mostLine)}… (${line.length} characters)` : line))
    .join('\n');

const languages: Record<string, string> = { js: 'javascript', mjs: 'javascript', ts: 'typescript', tsx: 'tsx', py: 'python', rs: 'rust', sh: 'bash', yml: 'yaml', md: 'markdown', h: 'c', cc: 'c', cpp: 'c', hpp: 'c' };

const languageOf = (path: string) => {
  const end = path.split('.').at(-1) ?? '';
  return languages[end] ?? end;
};

/** FileDiff shows the changes of one file, side by side where there is room, and takes comments on lines. */
export function FileDiff({ file, author, turn, narrow }: { file: DiffFile; author?: string; turn?: string; narrow?: boolean }) {
  const dark = useDark();
  const run = useRoute().run ?? '';
  const list = useStore(comments, (s) => s.list);
  const patch = useMemo(() => safe(file.patch ?? ''), [file.patch]);
  const model = useMemo(() => modelOf(file, patch), [file, patch]);
  if (file.binary) return <p className="dim">A binary file.</p>;
  if (!model) return <p className="dim">{file.truncated ? 'The change is too large to show.' : 'There is nothing to show.'}</p>;
  const mine = list.filter((one) => one.run === run && one.path === file.path && one.turn === turn);
  const extend = { oldFile: byLine(mine, 'old'), newFile: byLine(mine, 'new') };
  return (
    <div className="file-diff">
      <DiffView<Comment>
        diffFile={model}
        diffViewMode={narrow || innerWidth < 1100 ? DiffModeEnum.Unified : DiffModeEnum.Split}
        diffViewTheme={dark ? 'dark' : 'light'}
        diffViewHighlight={patch.length < mostColoured}
        diffViewWrap
        diffViewFontSize={12}
        diffViewAddWidget={Boolean(author)}
        extendData={extend}
        renderWidgetLine={({ side, lineNumber, onClose }) => (
          <CommentForm onClose={onClose} onSave={(text) => setComment({ run, author: author ?? '', turn, path: file.path, side: side === SplitSide.old ? 'old' : 'new', line: lineNumber, code: lineOf(model, side, lineNumber), text })} />
        )}
        renderExtendLine={({ data }) => (
          <div className="comment">
            <span>{data.text}</span>
            <button className="quiet small" onClick={() => setComment({ ...data, text: '' })}>
              Remove
            </button>
          </div>
        )}
      />
      {file.truncated && <p className="dim">The change goes on: it is too large to show whole.</p>}
    </div>
  );
}

function modelOf(file: DiffFile, patch: string): Model | undefined {
  if (!patch.trim()) return undefined;
  try {
    const language = languageOf(file.path);
    const model = Model.createInstance({ oldFile: { fileName: file.from ?? file.path, fileLang: language }, newFile: { fileName: file.path, fileLang: language }, hunks: [patch] });
    model.initRaw();
    if (patch.length < mostColoured) model.initSyntax();
    model.buildSplitDiffLines();
    model.buildUnifiedDiffLines();
    return model;
  } catch {
    return undefined;
  }
}

function byLine(list: Comment[], side: 'old' | 'new'): Record<string, { data: Comment }> {
  return Object.fromEntries(list.filter((one) => one.side === side).map((one) => [String(one.line), { data: one }]));
}

function lineOf(model: Model, side: SplitSide, line: number): string {
  const found = side === SplitSide.old ? model.getOldPlainLine(line) : model.getNewPlainLine(line);
  return found?.value ?? '';
}

function CommentForm({ onSave, onClose }: { onSave: (text: string) => void; onClose: () => void }) {
  const [text, setText] = useState('');
  return (
    <form
      className="comment-form"
      onSubmit={(event) => {
        event.preventDefault();
        onSave(text);
        onClose();
      }}
    >
      <textarea aria-label="Comment on this line" rows={2} value={text} onChange={(event) => setText(event.target.value)} autoFocus />
      <div className="row">
        <button className="primary small">Comment</button>
        <button type="button" className="quiet small" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}
