/** Sessions that are to be summarized after the running turn. */
const requests = new WeakSet<object>();

/** Notes that the session is to be summarized after the running turn. */
export function requestCompaction(session: object): void {
  requests.add(session);
}

/** Whether that was asked for since the last call. */
export function takeCompactionRequest(session: object): boolean {
  return requests.delete(session);
}
