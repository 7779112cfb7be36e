/** A request, whatever server it came in by. */
export interface IncomingCall {
  method: string;
  /** The path, without the query, percent-encoded as it came. */
  path: string;
  query: URLSearchParams;
  /** Names in lower case; of a header that came several times, the values joined by a comma. */
  headers: Record<string, string>;
  /** The bytes of the body; or, where something before has read and parsed them, what it found. */
  body: AsyncIterable<Uint8Array> | { parsed: unknown };
  /** Aborts when the client goes away; after the answer it does not matter any more. */
  signal: AbortSignal;
}
