/** Text from a store, safe for a terminal: characters that move the cursor or change colours become `\x1b`. Line breaks and tabs stay. */
export function safe(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g, (char) => {
    const code = char.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
}

/** The characters of a text as a reader sees them (graphemes). */
export function characters(text: string): string[] {
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

/** A text as one line of at most `most` characters. */
export function oneLine(text: string, most = 72): string {
  const line = characters(safe(text).replaceAll(/\s+/g, ' ').trim());
  return line.length <= most ? line.join('') : `${line.slice(0, most - 1).join('')}…`;
}

/** A value in one line. */
export function brief(value: unknown, most = 72): string {
  return value === undefined ? '' : oneLine(JSON.stringify(value), most);
}

/** A stored time in UTC, to the second. An invalid time is returned as it is. */
export function time(text: string | undefined): string {
  if (text === undefined) return '';
  const at = Date.parse(text);
  return Number.isNaN(at) ? oneLine(text, 20) : new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

/** `1 session`, `2 sessions`. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? noun : plural}`;
}
