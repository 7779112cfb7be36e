/** Numbers and times as text. Pure. */
const COUNT = new Intl.NumberFormat('en');
const TIME = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' });
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

export function count(value: number): string {
  return COUNT.format(value);
}

/** `1 message`, `2 messages`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${COUNT.format(value)} ${value === 1 ? one : many}`;
}

export function time(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : TIME.format(date);
}

/** `3 min. ago`, `yesterday`. */
export function ago(iso: string, now: number): string {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  if (Number.isNaN(seconds)) return iso;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  return unit ? AGO.format(Math.round(seconds / unit[1]), unit[0]) : 'just now';
}

/** `4 min 3 s`. */
export function duration(ms: number): string {
  const seconds = Math.floor(Math.abs(ms) / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([value]) => value > 0);
  if (first === -1) return '0 s';
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} bytes`;
  return value < 1_000_000 ? `${(value / 1000).toFixed(1)} kB` : `${(value / 1_000_000).toFixed(1)} MB`;
}

/** A text on one line, shortened. */
export function line(text: string, length = 200): string {
  const flat = text.replaceAll(/\s+/g, ' ').trim();
  return flat.length > length ? `${flat.slice(0, length)}…` : flat;
}

/** A JSON value on one line. */
export function jsonLine(value: unknown, length = 160): string {
  return value === undefined ? '' : line(JSON.stringify(value) ?? '', length);
}
