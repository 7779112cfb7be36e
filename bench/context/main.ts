/** The costs and savings of a context window. */
import type { Report } from '../report.ts';
import { benchAssembly, benchLooks } from './assembly.ts';
import { benchEstimates } from './estimates.ts';
import { benchFirestoreCosts } from './firestore-costs.ts';
import { benchPrefixes } from './prefixes.ts';
import { benchStall } from './stall.ts';
import { benchStored } from './stored.ts';
import { benchTokensSent } from './tokens-sent.ts';

/** With this many `--turns` the sessions have the lengths of the goals. */
const STANDARD_TURNS = 1000;

/** All counted figures, which a busy machine does not change. */
export async function benchContext(report: Report, turns: number): Promise<void> {
  const scaled = (length: number) => Math.max(10, Math.round((length * turns) / STANDARD_TURNS));
  await benchLooks(report, turns);
  await benchTokensSent(report, scaled(200));
  await benchPrefixes(report);
  benchEstimates(report);
  await benchStored(report, scaled(200));
  await benchFirestoreCosts(report);
  await benchStall(report);
}

export async function benchContextSpeed(report: Report, turns: number): Promise<void> {
  await benchAssembly(report, turns);
}
