import { session } from '../store/session';
import { useStore } from '../store/store';
import { Refused } from './Parts';

/** Gate is what a person sees whose browser the server does not know. */
export function Gate() {
  const problem = useStore(session, (s) => s.problem);
  return (
    <main className="gate">
      <h1>swarm</h1>
      <p>This page needs a new address from the terminal.</p>
      <p className="dim">An address works once and for a minute. The server forgets browsers when it restarts.</p>
      {problem?.hint ? (
        <Refused problem={problem} />
      ) : (
        <p className="dim">
          Press Enter in the terminal of the server: it prints a new one.
        </p>
      )}
      <button onClick={() => location.reload()}>Try again</button>
    </main>
  );
}
