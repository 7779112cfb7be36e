import { useEffect } from 'react';
import { useConnection } from '../api/connection.ts';
import { checkConnection } from '../api/requests.ts';

/** The pause between two checks while the server does not answer. */
const PAUSE_MS = 5000;

/** Says that the page may show old data, and what to do. */
export function ConnectionNotice() {
  const connection = useConnection();
  useEffect(() => {
    // A request that failed late may have come after the event that the live stream is open again.
    const timer = connection === 'lost' ? setInterval(() => void checkConnection(), PAUSE_MS) : undefined;
    return () => clearInterval(timer);
  }, [connection]);
  if (connection === 'open') return undefined;
  if (connection === 'lost')
    return (
      <p className="notice" role="alert">
        The inspector does not answer. Is its process still running? The page tries again.
      </p>
    );
  return (
    <p className="notice" role="alert">
      The inspector was restarted, and does not accept this page any more. Reload: its terminal or log then shows an
      address that opens the page.
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </p>
  );
}
