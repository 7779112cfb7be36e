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
import {
  quarantinedOf,
  quarantineNote,
  type Quarantined,
  type WaitingText,
} from '../pipeline/records/quarantine-note.ts';

/** The texts that wait for a decision. */
export async function waitingTexts({ store }: Pipeline, { id, options }: ScopeTarget): Promise<QuarantinedText[]> {
  const { notes } = await store.notes(id, NOTES.quarantine, options);
  return notes.flatMap(({ key, value }) =>
    quarantinedOf(value).map((item) => toQuarantinedText(`${key}#${item.number}`, item)),
  );
}

/**
 * Enqueues a text. The guards do not check it again. While consent is off the text waits on.
 *
 * @throws `NOT_FOUND` when the text does not wait for a decision.
 */
export async function approveText(pipeline: Pipeline, work: ScopeTarget, textId: string): Promise<Enqueued> {
  // Read before the text, so that the text does not come back if the scope is erased in between.
  const { consent, epoch } = await readLearningState(pipeline, work, textId);
  const item = await waitingText(pipeline, work, textId);
  if (consent === 'off') {
    pipeline.report({ type: 'no-consent', scope: work.scope, sourceId: item.source.id });
    return { status: 'refused', jobIds: [], openIds: [] };
  }
  // After a crash a repeated call makes the same job id.
  const result = await enqueue(pipeline, work, { inputs: [approvedInput(item)], epoch });
  if (result.status !== 'full') await removeText(pipeline, work, textId);
  return result;
}

/** @throws `NOT_FOUND` when the text does not wait for a decision. */
export async function discardText(pipeline: Pipeline, work: ScopeTarget, textId: string): Promise<void> {
  if ((await removeText(pipeline, work, textId)) === 0) throw notWaiting(textId);
}

/**
 * Removes texts that wait for a decision. Returns how many.
 *
 * @param keys Of the notes to look in. Default: all.
 */
export async function removeTexts(
  pipeline: Pipeline,
  work: ScopeTarget,
  isGone: (text: WaitingText) => boolean,
  keys?: readonly string[],
): Promise<number> {
  const counts = new Map<string, number>();
  let removed = 0;
  const plan = async () => {
    const { revision, notes } = await pipeline.store.notes(work.id, NOTES.quarantine, { ...work.options, keys });
    const steps = notes.flatMap(({ key, value }) => {
      const items = quarantinedOf(value);
      const kept = items.filter((item) => !isGone(item));
      counts.set(key, items.length - kept.length);
      return kept.length === items.length ? [] : [[quarantineNote(key, kept)]];
    });
    return { revision, steps };
  };
  await commitPlan(pipeline, work, plan, (operations) => {
    for (const one of operations) if (one.op === 'note') removed += counts.get(one.key)!;
  });
  return removed;
}

async function waitingText({ store }: Pipeline, { id, options }: ScopeTarget, textId: string): Promise<Quarantined> {
  const { key, number } = splitId(textId);
  const { notes } = await store.notes(id, NOTES.quarantine, { ...options, keys: [key] });
  const item = quarantinedOf(notes[0]?.value).find((one) => one.number === number);
  if (item) return item;
  throw notWaiting(textId);
}

function notWaiting(textId: string): GenkitError {
  return notFound(`No text ${quote(textId)} waits for a decision.`);
}

function removeText(pipeline: Pipeline, work: ScopeTarget, textId: string): Promise<number> {
  const { key, number } = splitId(textId);
  return removeTexts(pipeline, work, (text) => text.number === number, [key]);
}

/** The key of the note that has a text, and the text's number. */
function splitId(id: string): { key: string; number: number } {
  const at = id.lastIndexOf('#');
  // No note has the key '?'.
  return { key: id.slice(0, Math.max(0, at)) || '?', number: Number(id.slice(at + 1)) };
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
    // A procedure needs all messages of its job, so facts are learned from one that was kept back.
    const own = task === 'verbatim' ? task : 'learn';
    return { version: 1, task: own, source, range, messages: [message], sha256s: [sha256], isApproved: true };
  }
  const facts = [candidate!];
  return { version: 1, task: 'facts', source, facts, sha256: sha256Of(facts), isApproved: true };
}
