/** A request, independent of the server that received it. */
export interface IncomingCall {
  method: string;
  /** The path, without the query, percent-encoded as received. */
  path: string;
  query: URLSearchParams;
  /** Names are in lower case. The values of a repeated header are joined by a comma. */
  headers: Record<string, string>;
  /** The bytes of the body, or the parsed body if earlier middleware has read it. */
  body: AsyncIterable<Uint8Array> | { parsed: unknown };
  /** Aborted when the client disconnects. Ignored after the answer. */
  signal: AbortSignal;
}
