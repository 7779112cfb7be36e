// This file runs in a browser.

/**
 * The member of an error that names its class. The package ships as ES modules and as CommonJS, so one process can have two copies of a class.
 * `instanceof` knows the errors of one copy only; this registered symbol is the same in both.
 */
export const KIND = Symbol.for('genkitx-agents.error-kind');

/** Whether this is an error of a class, of any copy of the package. */
export function isKind(error: unknown, kind: string): boolean {
  return (error as { [KIND]?: unknown } | null | undefined)?.[KIND] === kind;
}
