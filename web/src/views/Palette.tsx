import { Command } from 'cmdk';
import { useRef, useState } from 'react';
import { excerpt } from '../lib/format';
import { useStore } from '../store/store';
import { ui } from '../store/ui';
import { commandsOf, type Entry } from './commands';
import { useModal } from './modal';

const close = () => ui.set({ palette: false });

/** act runs an entry after the palette is gone, which gives the focus back first. */
function act(entry: Entry, text: string): void {
  close();
  setTimeout(() => entry.run(text));
}

/** Palette does everything that the page can do, by words. */
export function Palette() {
  const open = useStore(ui, (s) => s.palette);
  return open ? <Opened /> : null;
}

function Opened() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [entries] = useState(commandsOf);
  const [asks, setAsks] = useState<Entry>();
  const [text, setText] = useState('');
  useModal(dialog, close);
  const choose = (entry: Entry) => {
    if (entry.asks) {
      setText('');
      return setAsks(entry);
    }
    act(entry, '');
  };
  return (
    <dialog ref={dialog} className="palette" aria-label="Do anything" onClick={(event) => event.target === dialog.current && close()}>
      {asks ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            act(asks, text);
          }}
        >
          <input className="palette-input" aria-label={asks.asks} placeholder={asks.asks} value={text} onChange={(event) => setText(event.target.value)} autoFocus required />
        </form>
      ) : (
        <Command label="Do anything" loop>
          <Command.Input className="palette-input" placeholder="Do anything…" autoFocus />
          <Command.List>
            <Command.Empty>Nothing has these words.</Command.Empty>
            {groupsOf(entries).map(([group, list]) => (
              <Command.Group key={group} heading={group}>
                {list.map((entry) => (
                  <Command.Item key={entry.id} value={`${entry.id} ${entry.title}`} onSelect={() => choose(entry)}>
                    <span>{excerpt(entry.title, 90)}</span>
                    {entry.note && <span className="dim small">{excerpt(entry.note, 50)}</span>}
                  </Command.Item>
                ))}
              </Command.Group>
            ))}
          </Command.List>
        </Command>
      )}
    </dialog>
  );
}

function groupsOf(entries: Entry[]): [string, Entry[]][] {
  const found = new Map<string, Entry[]>();
  for (const entry of entries) found.set(entry.group, [...(found.get(entry.group) ?? []), entry]);
  return [...found];
}
