/** The estimate of tokens compared with a real tokenizer, before and after the model has reported the tokens of the first half of a text. */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { Calibration } from '../../src/context/tokens/calibration.ts';
import { estimateTokens } from '../../src/session/log/estimate-tokens.ts';
import { TEXTS } from '../../test/context/support/texts.ts';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';

const MOST_OFF = 20;
const MOST_OFF_AFTER_CALIBRATION = 10;

export function benchEstimates(report: Report): void {
  for (const [name, text] of TEXTS) {
    const half = Math.floor(text.length / 2);
    const [first, second] = [text.slice(0, half), text.slice(half)];
    const calibration = new Calibration();
    calibration.learn('model', estimateTokens(first), countTokens(first));
    const corrected = estimateTokens(second) * calibration.factorOf('model');
    report.add(
      off(`token estimate of ${name}, 100 KB`, estimateTokens(text), countTokens(text), MOST_OFF),
      off(
        `token estimate of ${name}, second half, calibrated`,
        corrected,
        countTokens(second),
        MOST_OFF_AFTER_CALIBRATION,
      ),
    );
  }
}

function off(name: string, estimate: number, real: number, atMost: number) {
  const percent = Math.abs(estimate / real - 1) * 100;
  return { name: `${name}: away from gpt-tokenizer`, unit: '%' as const, ours: single(percent), goal: { atMost } };
}
