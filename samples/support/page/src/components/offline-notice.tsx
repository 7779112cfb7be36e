/** Shown while the server is away. The page keeps trying to connect; no message is lost. */
export function OfflineNotice() {
  return (
    <p className="notice offline" role="status">
      The server is not answering. This page reconnects by itself, and your conversations are kept on its disk.
    </p>
  );
}
