import type { SessionSnapshot } from 'genkit/beta';
import { isDeepStrictEqual } from 'node:util';
import { runOf } from '../../../src/agent/run-lease.ts';
import { isTerminal } from '../../../src/snapshot/status.ts';
import type { Played } from './play.ts';
import type { CallRecord } from './processes.ts';
import { ReferenceModel } from './reference-model.ts';

/** The violations in a result; none if the runtime is correct. */
export function judge(played: Played): string[] {
  const model = new ReferenceModel(played.commits);
  return [
    ...model.faults,
    ...[...played.snapshots.keys()].flatMap((sessionId) => [...judgeSession(played, model, sessionId)]),
    ...judgeCount(played, model),
    ...played.calls.flatMap((call) => [...judgeCall(played, model, call)]),
  ];
}

function* judgeSession(played: Played, model: ReferenceModel, sessionId: string): Generator<string> {
  const stored = played.snapshots.get(sessionId)!;
  const known = model.of(sessionId);
  const ids = (snapshots: readonly SessionSnapshot[]) =>
    snapshots.map(({ snapshotId, status }) => [snapshotId, status]);
  if (!isDeepStrictEqual(ids(stored), ids(known))) yield `session ${sessionId} has other snapshots than were written`;
  const leaf = played.leaves.get(sessionId);
  if (leaf?.snapshotId !== model.leafOf(sessionId)?.snapshotId)
    yield `session ${sessionId} has another leaf than the rule says`;
  for (const snapshot of stored) {
    if (!isTerminal(snapshot.status)) yield `snapshot ${snapshot.snapshotId} has no end`;
    if (snapshot.status === 'completed') yield* judgeCompleted(model, snapshot);
  }
  const completed = stored.filter(({ status }) => status === 'completed');
  const texts = completed.map(lastAsked);
  for (const text of texts)
    if (texts.indexOf(text) !== texts.lastIndexOf(text)) yield `${text} is in the history twice`;
  if (played.scenario.agent.onConflict === 'branch') return;
  const line = model.pathTo(leaf).filter(({ status }) => status === 'completed');
  const isLate = (snapshot: SessionSnapshot) => model.passedOver.has(runOf(snapshot)?.id ?? '');
  const lost = completed.filter(
    (snapshot) => !line.some(({ snapshotId }) => snapshotId === snapshot.snapshotId) && !isLate(snapshot),
  );
  for (const snapshot of lost) yield `${lastAsked(snapshot)} of session ${sessionId} is beside its one line`;
}

/** A completed turn has the messages of the one before it, and its own. */
function* judgeCompleted(model: ReferenceModel, snapshot: SessionSnapshot): Generator<string> {
  const parent = snapshot.parentId === undefined ? undefined : model.snapshots.get(snapshot.parentId);
  if (parent && parent.status !== 'completed') yield `${lastAsked(snapshot)} continues a turn that is ${parent.status}`;
  const texts = textsOf(snapshot);
  const text = lastAsked(snapshot);
  const expected = [...(parent ? textsOf(parent) : []), text, `re: ${text}`];
  if (!isDeepStrictEqual(texts, expected)) yield `${text} has the messages ${texts.join()}, not ${expected.join()}`;
  const { steps } = snapshot.state!.custom as { steps: string[] };
  const asked = texts.filter((_, i) => i % 2 === 0);
  if (!isDeepStrictEqual(steps, asked)) yield `${text} has the state ${steps.join()}, not ${asked.join()}`;
}

/** Each completed turn counted once in the user's record, and no other did. */
function* judgeCount({ counted }: Played, model: ReferenceModel): Generator<string> {
  const completed = [...model.snapshots.values()].filter(({ status }) => status === 'completed').length;
  if (completed !== counted) yield `${completed} turns completed, and the user's record counts ${counted}`;
}

function* judgeCall(played: Played, model: ReferenceModel, call: CallRecord): Generator<string> {
  const { output, ends, turns, isDetached, number } = call;
  const completed = (text: string) =>
    played.snapshots
      .get(call.sessionId)!
      .filter((snapshot) => snapshot.status === 'completed' && lastAsked(snapshot) === text);
  for (const [i, end] of ends.entries()) {
    const { text } = turns[i]!;
    const [snapshot] = completed(text);
    if (end.finishReason === 'stop' && snapshot?.snapshotId !== end.snapshotId)
      yield `${text} was acknowledged, and is not in the history`;
  }
  if (!output) return;
  const { finishReason } = output;
  if (finishReason === 'stop' && ends.length !== turns.length)
    yield `call ${number} stopped after ${ends.length} turns`;
  if (finishReason === 'detached') return yield* judgeDetached(model, call);
  yield* judgeRefusal(call, (text) => completed(text).length > 0);
  if (!isDetached) {
    for (const { text } of turns)
      if ((played.runs.get(text) ?? 0) > 1) yield `${text} was run ${played.runs.get(text)} times`;
  }
  yield* judgeFailure(call);
}

/** A turn that was refused, aborted, or failed by itself is not in the history. A turn that failed in the store may be. */
function* judgeRefusal({ turns, ends, output }: CallRecord, isCompleted: (text: string) => boolean): Generator<string> {
  for (const [i, { text, isFailing }] of turns.entries()) {
    const reason = ends[i]?.finishReason;
    const isRefused = reason === 'failed' && output!.finishReason === 'failed' && output!.error?.status === 'ABORTED';
    const isAborted = (reason ?? output!.finishReason) === 'aborted';
    if ((isRefused || isAborted || isFailing) && isCompleted(text))
      yield `${text} did not complete, and is in the history`;
  }
}

/** How often the save of a turn is tried. */
const ATTEMPTS = 3;

/** A store that fails only a few times fails no turn. */
function* judgeFailure({ connection, number, output, turns }: CallRecord): Generator<string> {
  if (output?.finishReason !== 'failed' || turns.some(({ isFailing }) => isFailing)) return;
  if (output.error?.status === 'ABORTED') return;
  const faults = connection.faults.get(number) ?? [];
  const isWaitedFor = faults.some(
    ({ kind, method }) => kind === 'hung' || kind === 'slow' || method !== 'saveSnapshot',
  );
  const attempts = (id: string | undefined) => faults.filter(({ snapshotId }) => snapshotId === id).length;
  const isGivenUp = faults.some(({ snapshotId }) => attempts(snapshotId) >= ATTEMPTS);
  if (!isWaitedFor && !isGivenUp && !connection.hasSlept)
    yield `call ${number} failed with ${output.error?.status}: ${output.error?.message}`;
}

function* judgeDetached(model: ReferenceModel, { number, output, turns }: CallRecord): Generator<string> {
  const last = model.snapshots.get(output!.snapshotId!);
  if (!last) return yield `call ${number} went to the background, and its snapshot is not there`;
  const path = new Set(model.pathTo(last).flatMap(textsOf));
  for (const { text } of turns) if (!path.has(text)) yield `${text} was accepted, and its input is lost`;
}

function textsOf({ state }: SessionSnapshot): string[] {
  return (state?.messages ?? []).map(({ content }) => content[0]!.text!);
}

/** The user's last text. */
function lastAsked({ state }: SessionSnapshot): string {
  return state?.messages?.findLast(({ role }) => role === 'user')?.content[0]?.text ?? 'nothing';
}
