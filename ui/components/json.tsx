/** A value as it is, in a box that scrolls. */
export function Json({ value }: { value: unknown }) {
  return <pre tabIndex={0}>{JSON.stringify(value, undefined, 2)}</pre>;
}
