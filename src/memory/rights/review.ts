import type { GenkitError } from 'genkit';
import { notFound, quote } from '../../errors.ts';
import { messageText } from '../../session/log/transcript.ts';
import type { ScopeTarget } from '../scopes.ts';
import type { QuarantinedText } from '../types.ts';
import { commitPlan } from '../pipeline/records/commit-plan.ts';
import { enqueue, type Enqueued } from '../pipeline/ingest/ingest.ts';
import { shortHash } from '../pipeline/records/ranges.ts';
import { sha256Of, type JobInput } from '../pipeline/records/job-input.ts';
import { NOTES, type Pipeline } from '../pipeline/pipeline.ts';
import { readLearningState } from '../pipeline/records/learning-state.ts';
import { quarantinedOf, quarantineNote, type Quarantined } from '../pipeline/records/quarantine-note.ts';

/** Lists the texts that wait for a decision. */
export async function waitingTexts({ store }: Pipeline, { id, options }: ScopeTarget): Promise<QuarantinedText[]> {
  const { notes } = await store.notes(id, NOTES.quarantine, options);
  return notes.map(({ key, value }) => toQuarantinedText(key, quarantinedOf(value)));
}

/**
 * Enqueues a text, which the guards do not check again. While consent is off, the text stays in quarantine.
 *
 * @throws `NOT_FOUND` when the text does not wait for a decision.
 */
export async function approveText(pipeline: Pipeline, target: ScopeTarget, textId: string): Promise<Enqueued> {
  // Read the state before the text, so that the text does not come back if the scope is erased in between.
  const { consent, epoch } = await readLearningState(pipeline, target);
  const item = await waitingText(pipeline, target, textId);
  if (consent === 'off') {
    pipeline.report({ type: 'no-consent', scope: target.scope, sourceId: item.source.id });
    return { status: 'refused', jobIds: [], openIds: [] };
  }
  // A repeated call after a crash makes the same job id.
  const result = await enqueue(pipeline, target, { inputs: [approvedInput(item)], epoch });
  if (result.status !== 'full') await removeTexts(pipeline, target, () => true, [textId]);
  return result;
}

/** @throws `NOT_FOUND` when the text does not wait for a decision. */
export async function discardText(pipeline: Pipeline, target: ScopeTarget, textId: string): Promise<void> {
  if ((await removeTexts(pipeline, target, () => true, [textId])) === 0) throw notWaiting(textId);
}

/**
 * Removes texts that wait for a decision. Returns how many.
 *
 * @param ids Removes only these texts. Default: all.
 */
export async function removeTexts(
  pipeline: Pipeline,
  target: ScopeTarget,
  isGone: (text: Quarantined) => boolean,
  ids?: readonly string[],
): Promise<number> {
  let removed = 0;
  const plan = async () => {
    const { revision, notes } = await pipeline.store.notes(target.id, NOTES.quarantine, {
      ...target.options,
      keys: ids,
    });
    const gone = notes.filter(({ value }) => isGone(quarantinedOf(value)));
    return { revision, steps: gone.map(({ key }) => [quarantineNote(key, undefined)]) };
  };
  await commitPlan(pipeline, target, plan, ({ length }) => (removed += length));
  return removed;
}

async function waitingText({ store }: Pipeline, { id, options }: ScopeTarget, textId: string): Promise<Quarantined> {
  const { notes } = await store.notes(id, NOTES.quarantine, { ...options, keys: [textId] });
  if (notes[0]) return quarantinedOf(notes[0].value);
  throw notWaiting(textId);
}

function notWaiting(textId: string): GenkitError {
  return notFound(`No text ${quote(textId)} waits for a decision.`);
}

function toQuarantinedText(id: string, { reason, at, source, message, candidate }: Quarantined): QuarantinedText {
  const text = candidate?.text ?? messageText(message!);
  const data = candidate?.data;
  const kind = candidate ? 'memory' : 'message';
  return { id, kind, reason, text, ...(data !== undefined && { data }), sourceId: source.id, at };
}

function approvedInput({ source, message, position = 0, task, candidate }: Quarantined): JobInput {
  if (message) {
    const sha256 = sha256Of(message);
    const hash = shortHash(sha256);
    const range = { from: position, to: position + 1, base: hash, hashes: hash };
    // A procedure needs all messages of its job, so a single quarantined message is only used to learn facts.
    const own = task === 'verbatim' ? task : 'learn';
    return { version: 1, task: own, source, range, messages: [message], sha256s: [sha256], isApproved: true };
  }
  const facts = [candidate!];
  return { version: 1, task: 'facts', source, facts, sha256: sha256Of(facts), isApproved: true };
}
