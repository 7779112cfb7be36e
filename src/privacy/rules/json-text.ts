import { replaceMapped, type MappedText } from './offset-map.ts';

/** A string, a number or a member's name in JSON text. */
export interface JsonLiteral extends MappedText {
  /** Whether it is a number. `text` is then the number as it is written. */
  readonly isNumber: boolean;
  /** The name of the member whose value it is, or whose array holds it. */
  readonly label?: string;
}

/** Strings, with the colon after names; numbers. Only for valid JSON, where every string is closed. */
const LITERAL = /"((?:[^"\\]|\\.)*)(?:"(\s*:)?)?|-?\d[\d.eE+-]*/g;
const ESCAPE = /\\(?:u[\da-fA-F]{4}|.)/g;

/**
 * The literals of a text that is a JSON object, array or string; `undefined` for any other. Positions are kept, so that the text around a
 * finding stays as it is: white space, and numbers with more digits than JavaScript has.
 */
export function jsonLiterals(text: string): JsonLiteral[] | undefined {
  if (!isJson(text)) return undefined;
  const literals: JsonLiteral[] = [];
  let label: string | undefined;
  for (const match of text.matchAll(LITERAL)) {
    const isNumber = match[1] === undefined;
    const start = isNumber ? match.index : match.index + 1;
    const literal = isNumber ? { text: match[0], originOf: (index: number) => index } : unescaped(match[1]!);
    const isName = match[2] !== undefined;
    literals.push({
      text: literal.text,
      originOf: (index) => start + literal.originOf(index),
      isNumber,
      label: isName ? undefined : label,
    });
    if (isName) label = literal.text;
  }
  return literals;
}

/** Whether the text begins as a JSON object, array or string does. */
export function mayBeJson(text: string): boolean {
  return /^\s*[{["]/.test(text);
}

function isJson(text: string): boolean {
  if (!mayBeJson(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function unescaped(raw: string): MappedText {
  return replaceMapped(raw, ESCAPE, (escape) => JSON.parse(`"${escape}"`) as string);
}
