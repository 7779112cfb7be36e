import { piiRules, redactText, type Finding, type PiiKind } from 'genkitx-agents/privacy';
import { beforeAll, describe, expect, it } from 'vitest';
import { lookAlikes, samplesOf, type Sample } from './corpus.ts';

const SEED = Number(process.env['SEED'] ?? 20_261_123);
const KINDS = piiRules().map(({ name }) => name as PiiKind);
const OF_EACH = 200;
const LOOK_ALIKES = 300;

interface Outcome {
  readonly sample: Sample;
  readonly findings: readonly Finding[];
}

describe(`piiRules on a corpus of seed ${SEED}`, () => {
  const outcomes: Outcome[] = [];

  beforeAll(async () => {
    const rules = piiRules();
    const samples = [
      ...KINDS.flatMap((kind, i) => samplesOf(kind, OF_EACH, SEED + i)),
      ...lookAlikes(LOOK_ALIKES, SEED),
    ];
    for (const sample of samples) {
      const { findings } = await redactText(sample.text, rules);
      outcomes.push({ sample, findings });
    }
  });

  /** The planted value, found with its kind, from its first character to its last. */
  function isFound({ sample: { text, planted }, findings }: Outcome): boolean {
    const start = text.indexOf(planted!.value);
    return findings.some(
      (it) => it.kind === planted!.kind && it.start <= start && it.end >= start + planted!.value.length,
    );
  }

  it.each(KINDS)('have recall and precision of 0.95 for %s', (kind) => {
    const own = outcomes.filter(({ sample }) => sample.planted?.kind === kind);
    const missed = own.filter((outcome) => !isFound(outcome)).map(({ sample }) => sample.text);
    const calledSo = outcomes.filter(({ findings }) => findings.some((finding) => finding.kind === kind));
    const wrong = calledSo.filter(({ sample }) => sample.planted?.kind !== kind).map(({ sample }) => sample.text);
    const recall = 1 - missed.length / own.length;
    const precision = 1 - wrong.length / calledSo.length;
    console.log(`${kind}: recall ${recall.toFixed(3)}, precision ${precision.toFixed(3)}`);
    expect(recall, `missed: ${missed.slice(0, 8).join('\n')}`).toBeGreaterThanOrEqual(0.95);
    expect(precision, `wrong: ${wrong.slice(0, 8).join('\n')}`).toBeGreaterThanOrEqual(0.95);
  });

  it('changes at most 5 % of the look-alikes', () => {
    const touched = outcomes.filter(({ sample, findings }) => !sample.planted && findings.length > 0);
    console.log(`look-alikes touched: ${touched.length} of ${LOOK_ALIKES}`);
    expect(touched.length / LOOK_ALIKES, touched.map(({ sample }) => sample.text).join('\n')).toBeLessThanOrEqual(0.05);
  });
});
