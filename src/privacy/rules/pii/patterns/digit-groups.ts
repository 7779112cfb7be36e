/** Digits without a sign between them. "4111 1111" has two groups, "(030) 90-18" three. */
export interface DigitGroup {
  readonly start: number;
  readonly end: number;
  readonly digits: string;
}

/** A longer run is divided. */
const MAX_GROUPS = 64;

/** The runs of digit groups in `text`. Two groups are in one run if `separator` matches all that is between them. */
export function* digitRuns(text: string, separator: RegExp): Generator<DigitGroup[]> {
  let run: DigitGroup[] = [];
  for (const { 0: digits, index } of text.matchAll(/\d+/g)) {
    const last = run.at(-1);
    const isNext = last && index - last.end <= 4 && separator.test(text.slice(last.end, index));
    if (!isNext || run.length === MAX_GROUPS) {
      if (run.length > 0) yield run;
      run = [];
    }
    run.push({ start: index, end: index + digits.length, digits });
  }
  if (run.length > 0) yield run;
}
