/** A registered symbol, because reader and writer may have different module formats. */
const CAUSE = Symbol.for('genkitx-agents.error-cause');

/** Attaches the thrown value to an error record. It stays in this process: JSON and copies leave it out. */
export function keepCause<T extends object>(record: T, cause: unknown): T {
  return Object.defineProperty(record, CAUSE, { value: cause, configurable: true });
}

/** Returns the value that {@link keepCause} attached; `undefined` for a record that was stored or sent over HTTP. */
export function causeOf(record: unknown): unknown {
  return (record as { [CAUSE]?: unknown } | null | undefined)?.[CAUSE];
}
