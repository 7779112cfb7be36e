import { WrongUse } from '../failures.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration such as `30d`, `12h`, `15m`, `10s`, `500ms`, in ms. */
export function parseDuration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined) throw new WrongUse(`'${text}' is not a duration. Write 30d, 12h, 15m, 10s or 500ms.`);
  return Number(number) * UNITS[unit!]!;
}

/** A whole number, at least 1. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new WrongUse(`'${text}' is not a whole number of at least 1.`);
  return Number(text);
}
