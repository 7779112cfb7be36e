/** Registered: the reader may be of the other module format than the writer. */
const CAUSE = Symbol.for('genkitx-agents.error-cause');

/** Attaches what was thrown to the record of an error. It stays in this process: it is in no JSON and no copy. */
export function keepCause<T extends object>(record: T, cause: unknown): T {
  return Object.defineProperty(record, CAUSE, { value: cause, configurable: true });
}

/** What {@link keepCause} attached; `undefined` for a record that was stored or came over HTTP. */
export function causeOf(record: unknown): unknown {
  return typeof record === 'object' && record !== null ? (record as { [CAUSE]?: unknown })[CAUSE] : undefined;
}
