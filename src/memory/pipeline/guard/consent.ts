import { invalidArgument } from '../../../errors.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline } from '../pipeline.ts';

type Consent = 'on' | 'off';

/** The scope's own answer; `undefined` while there is none. */
export async function readConsent(
  { store }: Pick<Pipeline, 'store'>,
  { id, options }: ScopeTarget,
): Promise<Consent | undefined> {
  const { notes } = await store.notes(id, NOTES.pipeline, { ...options, keys: [PIPELINE_KEYS.consent] });
  return (notes[0]?.value as { consent: Consent } | undefined)?.consent;
}

/** @throws `INVALID_ARGUMENT` for anything else than `on` and `off`. */
export async function writeConsent(
  { store, now }: Pick<Pipeline, 'store' | 'now'>,
  { id, options }: ScopeTarget,
  consent: Consent,
): Promise<void> {
  if (consent !== 'on' && consent !== 'off') throw invalidArgument("Consent is 'on' or 'off'.");
  const value = { consent, at: new Date(now()).toISOString() };
  const note: MemoryOperation = { op: 'note', kind: NOTES.pipeline, key: PIPELINE_KEYS.consent, value };
  await store.commit(id, [note], { ...options, now: now() });
}
