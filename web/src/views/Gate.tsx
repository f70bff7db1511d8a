import { session } from '../store/session';
import { useStore } from '../store/store';

/** Gate is what a person sees whose browser the server does not know. */
export function Gate() {
  const problem = useStore(session, (s) => s.problem);
  return (
    <main className="gate">
      <h1>swarm</h1>
      <p>This page needs a new address from the terminal.</p>
      <p className="dim">
        An address works once and for a minute. The server forgets browsers when it restarts.
      </p>
      {problem && (
        <p className="refusal" role="alert">
          {problem.message}
        </p>
      )}
      <p>{problem?.hint ?? 'press Enter in the terminal of swarm serve for a new address'}</p>
      <button onClick={() => location.reload()}>Try again</button>
    </main>
  );
}
