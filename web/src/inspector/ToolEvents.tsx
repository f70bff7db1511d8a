import type { FullTurn, Turn } from '../api/types';
import { excerpt } from '../lib/format';
import { LongText } from './LongText';

/** ToolEvents lists the tools that a turn used, with input and output. */
export function ToolEvents({ full, turn }: { full?: FullTurn; turn?: Turn }) {
  const tools = full?.tools ?? turn?.tools ?? [];
  const files = turn?.files ?? [];
  return (
    <>
      {tools.length === 0 && files.length === 0 && <p className="dim">The turn used no tool.</p>}
      <ul className="tools-list">
        {tools.map((tool, index) => {
          const input = tool.input === undefined ? '' : typeof tool.input === 'string' ? tool.input : JSON.stringify(tool.input, null, 2);
          return (
            <li key={tool.id ?? index}>
              <details>
                <summary>
                  <span className={tool.failed ? 'tone-bad' : 'tone-good'} role="img" aria-label={tool.failed ? 'failed' : 'worked'}>
                    {tool.failed ? '✗' : '✓'}
                  </span>{' '}
                  <b>{excerpt(tool.name, 80)}</b> <span className="dim">{excerpt(input, 100)}</span>
                </summary>
                {input && <LongText text={input} label={`Input of ${tool.name}`} />}
                {tool.output && <LongText text={tool.output} label={`Output of ${tool.name}`} />}
              </details>
            </li>
          );
        })}
      </ul>
      {files.length > 0 && (
        <>
          <h3>Files changed</h3>
          <ul className="plain">
            {files.map((file) => (
              <li key={file}>
                <code>{excerpt(file, 200)}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      {(turn?.findings ?? []).map((finding, index) => (
        <p key={index} className="why small">
          <span className="tone-wait">!</span> {finding.evidence}
        </p>
      ))}
    </>
  );
}
