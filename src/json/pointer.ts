/** JSON Pointer (RFC 6901): the address of one place in a JSON value. `''` is the whole value, `/a/0` the first element of member `a`. */

/** Escapes a reference token for a pointer: `~` becomes `~0` and `/` becomes `~1`. */
export function escapeToken(token: string): string {
  return token.includes('~') || token.includes('/') ? token.replaceAll('~', '~0').replaceAll('/', '~1') : token;
}

/** The pointer of `tokens`: object keys, and array indices in decimal. */
export function formatPointer(tokens: readonly (string | number)[]): string {
  return tokens.map((token) => `/${escapeToken(String(token))}`).join('');
}

/**
 * The tokens of a pointer, unescaped, outermost first; none for the whole value.
 *
 * @throws SyntaxError when `pointer` is not empty and does not begin with `/`, or has a `~` outside of `~0` and `~1`.
 */
export function parsePointer(pointer: string): string[] {
  if (/^[^/]|~(?![01])/.test(pointer)) {
    throw new SyntaxError('a JSON Pointer is empty or begins with "/", and has "~" only in "~0" and "~1"');
  }
  const tokens = pointer.split('/').slice(1);
  return pointer.includes('~') ? tokens.map(unescapeToken) : tokens;
}

function unescapeToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
