/** The placeholder of a finding. It needs no escape in JSON. */
export function placeholder(kind: string, number: number): string {
  const name = kind.toUpperCase().replaceAll(/[^A-Z]+/g, '_');
  return `[${name}_${number}]`;
}

/** Placeholders, and files as base64. Names have no digits, so that no key or number is taken for a placeholder. */
const SKIPPED =
  /\[[A-Z]{1,30}(?:_[A-Z]{1,30}){0,7}_\d{1,5}\]|\bdata:[\w.+-]{1,80}\/[\w.+-]{1,80}[\w=;.-]{0,80};base64,[\w+/=%-]*/g;

/** The parts of `text` in which nothing is found: placeholders of an earlier redaction, and `data:` URLs. */
export function spansToSkip(text: string): { start: number; end: number }[] {
  if (!text.includes('[') && !text.includes(';base64,')) return [];
  return [...text.matchAll(SKIPPED)].map(({ index, 0: span }) => ({ start: index, end: index + span.length }));
}
