/** Stores that break exactly one rule of the contract. The suite must catch each of them. */
import { contents, names } from './content.ts';
import { trees } from './lineage.ts';
import type { Mutant } from './mutant.ts';
import { recordKeeping } from './record-keeping.ts';
import { removals } from './removal.ts';
import { terminals } from './saves.ts';
import { scoping } from './scoping.ts';
import { watching } from './watching.ts';

export const MUTANTS: readonly Mutant[] = [
  ...terminals,
  ...trees,
  ...contents,
  ...names,
  ...watching,
  ...removals,
  ...scoping,
  ...recordKeeping,
];
