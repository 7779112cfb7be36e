/** Deeper values are refused when they are copied. */
const DEEPEST = 2500;

/**
 * Whether a value's JSON text is certainly longer than `limit`. Fast, because it adds up the lengths of strings and does not read them; so
 * it may return false for a longer value with many escaped characters.
 */
export function isLonger(value: unknown, limit: number): boolean {
  return measure(value, limit, 0) > limit;
}

function measure(value: unknown, limit: number, depth: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return 1;
  let length = 2;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && length <= limit; index++) {
      length += 1 + measure(value[index], limit - length, depth + 1);
    }
    return length;
  }
  // Not `Object.keys`, which would take most of the time. A value with inherited members is refused later.
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    // A short cut, because most members are strings.
    length += typeof member === 'string' ? key.length + member.length + 6 : key.length + 4;
    if (typeof member === 'object') length += measure(member, limit - length, depth + 1);
    if (length > limit) break;
  }
  return length;
}
