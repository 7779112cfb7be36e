const TOKEN = /[{}[\],:]|"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s{}[\],:"]+/gs;

/**
 * Parses the received part of a JSON object or array: incomplete strings as far as received; numbers, literals and members once they are
 * complete. Skips text before it.
 *
 * @returns `undefined` when there is no object or array yet, or the text is not JSON.
 */
export function parsePartialJson(text: string): unknown {
  const start = text.search(/[{[]/);
  if (start < 0) return undefined;
  const json = text.slice(start);
  const closers: string[] = [];
  /** The longest prefix that closing brackets complete. */
  let whole = '';
  let isKey = false;
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    const end = index + token.length;
    let isWhole = true;
    if (token === '{' || token === '[') {
      closers.unshift(token === '{' ? '}' : ']');
      isKey = token === '{';
    } else if (token === '}' || token === ']') {
      closers.shift();
    } else if (token === ',' || token === ':') {
      isKey = token === ',' && closers[0] === '}';
      isWhole = false;
    } else if (token.startsWith('"')) {
      const isOpen = end === json.length && parse(token) === undefined;
      if (isOpen && !isKey) return parseOpenString(json, `"${closers.join('')}`);
      isWhole = !isKey;
    } else {
      isWhole = end < json.length;
    }
    if (isWhole) whole = json.slice(0, end) + closers.join('');
    if (closers.length === 0) break;
  }
  return parse(whole);
}

/** Parses a text that ends inside of a string, maybe inside of an escape such as `\u00e4`. */
function parseOpenString(json: string, closing: string): unknown {
  let value: unknown;
  for (let cut = 0; cut < 6 && value === undefined; cut++) value = parse(json.slice(0, json.length - cut) + closing);
  return value;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
