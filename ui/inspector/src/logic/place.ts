/** The view of the page, from its address after the `#`, so that a reload shows the same view. Pure. */
export interface Place {
  /** `['session', 'ID']`. */
  path: readonly string[];
  /** Without empty values. */
  query: Readonly<Record<string, string>>;
}

export function readPlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return { path: path.split('/').map(decode), query: Object.fromEntries(new URLSearchParams(query)) };
}

export function hrefOf(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = kept.length > 0 ? `?${new URLSearchParams(kept)}` : '';
  return `#/${path.map(encodeURIComponent).join('/')}${search}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
