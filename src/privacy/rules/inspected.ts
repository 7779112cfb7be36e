import type { RuleMatch } from './types.ts';

/** A 64-bit number, as Google's clients give it. */
export type Int64 =
  | number
  | string
  | {
      /** The number, as exact as JavaScript has it. */
      toNumber(): number;
    }
  | null;

/** The findings of Sensitive Data Protection in a text. */
export interface InspectedText {
  /** The findings. */
  findings?: InspectedFinding[] | null;
  /** Whether it left out findings. */
  findingsTruncated?: boolean | null;
}

/** A finding of Sensitive Data Protection. */
export interface InspectedFinding {
  /** The type of the data. Model Armor gives only its name. */
  infoType?: string | InspectedType | null;
  /** Where it is. */
  location?: InspectedLocation | null;
}

/** A type of sensitive data. */
export interface InspectedType {
  /** As in `PERSON_NAME`. */
  name?: string | null;
}

/** Where a finding is. */
export interface InspectedLocation {
  /** In code points of the text. */
  codepointRange?: CodePointRange | null;
}

/** A part of a text, in code points. */
export interface CodePointRange {
  /** The first. */
  start?: Int64;
  /** The one after the last. */
  end?: Int64;
}

/** The findings with places in UTF-16 code units. A finding without a place covers the whole text, so that it is not lost. */
export function inspectedMatches(text: string, findings: readonly InspectedFinding[]): RuleMatch[] {
  if (findings.length === 0) return [];
  const offsets = codePointOffsets(text);
  return findings.map(({ infoType, location }) => {
    const range = location?.codepointRange;
    const start = offsets[toNumber(range?.start)] ?? 0;
    const end = offsets[toNumber(range?.end)] || text.length;
    return {
      kind: kindOf(typeof infoType === 'string' ? infoType : infoType?.name),
      start,
      end: end > start ? end : text.length,
    };
  });
}

function toNumber(value: Int64 | undefined): number {
  return typeof value === 'object' ? (value?.toNumber() ?? 0) : Number(value ?? 0);
}

function kindOf(infoType: string | null | undefined): string {
  return (infoType || 'finding').toLowerCase().replaceAll('_', '-');
}

/** The index of each code point in `text`, and that of the end. */
function codePointOffsets(text: string): number[] {
  const offsets: number[] = [];
  let offset = 0;
  for (const character of text) {
    offsets.push(offset);
    offset += character.length;
  }
  return [...offsets, offset];
}
