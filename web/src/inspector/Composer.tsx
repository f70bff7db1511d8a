import { useState } from 'react';
import { sendMessage } from '../store/actions';

/** Composer writes to an agent: for its next turn, or at once. */
export function Composer({ run, agent, busy }: { run: string; agent: string; busy: boolean }) {
  const [text, setText] = useState('');
  const send = (how: 'queue' | 'interrupt') => {
    if (text.trim()) void sendMessage(run, agent, text, how).then((ok) => ok && setText(''));
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send('queue');
      }}
    >
      <textarea
        id="message"
        rows={2}
        aria-label={`Message to ${agent}`}
        placeholder={`Write to ${agent}`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send('queue');
          if (event.key === 'Escape') event.currentTarget.blur();
        }}
      />
      <div className="row">
        <button className="primary" title="It gets the message in its next turn (Ctrl Enter)">
          Queue
        </button>
        <button type="button" className="danger" onClick={() => send('interrupt')} disabled={!busy} title="Cut the turn that it has, and begin one with the message">
          Interrupt
        </button>
      </div>
    </form>
  );
}
