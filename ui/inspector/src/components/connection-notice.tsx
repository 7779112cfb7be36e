import { useConnection } from '../api/connection.ts';

/** Says that the page may show old data, and what to do. */
export function ConnectionNotice() {
  const connection = useConnection();
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
