/** A value as JSON, in a box that scrolls. */
export function Json({ value }: { value: unknown }) {
  return <pre tabIndex={0}>{JSON.stringify(value, undefined, 2)}</pre>;
}
