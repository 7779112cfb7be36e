/** One place of a JSON value replaced by another value. */
export function mutate(value: unknown, path: number[], by: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null) {
    return by;
  }
  const keys = Object.keys(value);
  const key = keys[step % Math.max(1, keys.length)];
  if (key === undefined) {
    return by;
  }
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  copy[key] = mutate(copy[key], rest, by);
  return copy;
}
