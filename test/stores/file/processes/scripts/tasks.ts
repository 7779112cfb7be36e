import { readSync, writeSync } from 'node:fs';
import type { SessionSnapshot, SnapshotStatus } from '../../../../../src/store/contract.ts';
import { reserveSnapshotId } from '../../../../../src/snapshot/ids.ts';
import { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';
import { CrashWriter, type WriterPlan } from './crash-writer.ts';
import { mortalFileSystem, type DeathPlan } from '../support/mortal-file-system.ts';
import { countTurn } from './records.ts';
import { outcomeOf, type Outcome } from '../support/outcome.ts';
import { GATE, REPORTS } from '../support/protocol.ts';
import { increment, pending, turn } from '../support/snapshots.ts';
import { FAST, storeOf, type StoreSpec } from '../support/stores.ts';

/** The status that a contender sets on a snapshot; `pending` is a heartbeat. */
export type Wish = Extract<SnapshotStatus, 'pending' | 'completed' | 'failed' | 'aborted'>;

/** A call of a store as it was seen from outside; times are in ns, by a clock that all processes share. */
export interface Observed {
  readonly start: bigint;
  readonly end: bigint;
  /** The leaf that was saved or read; a refused save has read the leaf that it names. */
  readonly leaf: string | null;
  readonly kind: 'save' | 'read';
}

/** As {@link Observed}, in a form that passes between processes. */
export type Recorded = Omit<Observed, 'start' | 'end'> & { readonly start: string; readonly end: string };

/** Writes a line to the parent; it is with the parent even if this process is killed right after. */
function report(line: string): void {
  writeSync(REPORTS, `${line}\n`);
}

/** Stops the whole process until the parent opens the gate. */
function waitAtGate(): void {
  readSync(GATE, Buffer.alloc(1));
}

/** What a child process can do. */
export const tasks = {
  ready: async (_input: object): Promise<void> => {},

  /** Increments a counter this many times, one after the other. */
  async increment({ store, id, times }: { store: StoreSpec; id: string; times: number }): Promise<void> {
    for (let i = 0; i < times; i++) await storeOf(store).saveSnapshot(id, increment);
  },

  /** Plays this many turns of its own session. Each increments shared records and sets its own key in one of them. */
  async countTurns(input: { store: StoreSpec; sessionId: string; times: number }): Promise<void> {
    const store = storeOf(input.store);
    for (let i = 0; i < input.times; i++) await countTurn(store, input.sessionId, `${input.sessionId}-${i}`);
  },

  /** As the task before, but reports each saved id, and dies as planned, or is killed. */
  async countUntilKilled(input: { store: StoreSpec; sessionId: string; death?: DeathPlan }): Promise<void> {
    const { folder, options } = input.store;
    const mortal = input.death && mortalFileSystem(input.death);
    const store = new FileSessionStore(folder, { ...FAST, ...options }, mortal);
    for (;;) {
      const id = reserveSnapshotId();
      await countTurn(store, input.sessionId, id);
      report(id);
    }
  },

  /** Saves all `wishes` on a snapshot at once. */
  wish({ store, id, wishes }: { store: StoreSpec; id: string; wishes: readonly Wish[] }): Promise<Outcome[]> {
    return Promise.all(wishes.map((wish) => makeWish(storeOf(store), id, wish)));
  },

  /** Saves a snapshot with this id for the first time in a session. */
  claim({ store, id, sessionId }: { store: StoreSpec; id: string; sessionId: string }): Promise<Outcome> {
    return outcomeOf(storeOf(store).saveSnapshot(id, (current) => (current ? null : turn(sessionId, undefined, id))));
  },

  /** Creates a record of a session, unless it exists. */
  begin({ store, sessionId, by }: { store: StoreSpec; sessionId: string; by: string }): Promise<Outcome> {
    const record = { sessionId, kind: 'lease', key: 'owner', value: by, expectedRevision: null };
    return outcomeOf(storeOf(store).writeRecord(record));
  },

  /** Plays turns after the session's current leaf, each until it succeeds. Returns all observed calls. */
  async play(input: { store: StoreSpec; sessionId: string; by: string; turns: number }): Promise<Recorded[]> {
    const seen: Recorded[] = [];
    for (let n = 0; n < input.turns; n++) {
      while (!(await playOnce(input, `${input.by} ${n}`, seen)));
    }
    return seen;
  },

  /** Saves siblings below one parent. */
  async branch(input: { store: StoreSpec; sessionId: string; parentId: string; ids: string[] }): Promise<void> {
    const parent = await storeOf(input.store).getSnapshot({ snapshotId: input.parentId });
    for (const id of input.ids) {
      await storeOf(input.store).saveSnapshot(id, () => turn(input.sessionId, parent, id));
    }
  },

  /** Gives a snapshot these statuses, one after the other. */
  async walk(input: { store: StoreSpec; id: string; statuses: readonly SnapshotStatus[] }): Promise<void> {
    for (const status of input.statuses) {
      await storeOf(input.store).saveSnapshot(input.id, (current) => ({ ...(current ?? pending('watched')), status }));
    }
  },

  /** Reports `holding` in the middle of a save and stays there until the parent opens the gate. */
  hold({ store, id }: { store: StoreSpec; id: string }): Promise<Outcome> {
    const save = storeOf(store).saveSnapshot(id, (current) => {
      report('holding');
      waitAtGate();
      return increment(current);
    });
    return outcomeOf(save);
  },

  /** Gives a snapshot another state, and dies as planned in the middle of it. */
  async dieRewriting(input: { store: StoreSpec; id: string; death: DeathPlan }): Promise<void> {
    const { folder, options } = input.store;
    const store = new FileSessionStore(folder, { ...FAST, ...options }, mortalFileSystem(input.death));
    await store.saveSnapshot(input.id, (current) => ({ ...current!, state: { custom: { rewritten: true } } }));
  },

  /** Writes, and reports what it does, until it is killed. */
  write: (plan: WriterPlan): Promise<never> => new CrashWriter(plan, { report, waitAtGate }).run(),

  /** Opens a store, uses all of it, closes it, and returns the new handles that keep this process running. */
  async useAndClose({ folder }: { folder: string }): Promise<string[]> {
    const before = process.getActiveResourcesInfo();
    const store = new FileSessionStore(folder, { ...FAST, snapshotWatchPollIntervalMs: 1 });
    const heard = new Promise<SessionSnapshot>((resolve) => {
      store.onSnapshotStateChange('closing', resolve);
    });
    await store.saveSnapshot('closing', () => pending('watched'));
    await heard;
    await store.close();
    return subtract(process.getActiveResourcesInfo(), before);
  },
};

async function makeWish(store: FileSessionStore, id: string, wish: Wish): Promise<Outcome> {
  return outcomeOf(
    store.saveSnapshot(id, (current) => {
      const { custom } = current!.state as { custom: { settledBy?: string; beats?: number } };
      const news = wish === 'pending' ? { beats: (custom.beats ?? 0) + 1 } : { settledBy: wish };
      return { ...current!, status: wish, state: { ...current!.state, custom: { ...custom, ...news } } };
    }),
  );
}

/** One attempt at a turn; `true`: it was saved. */
async function playOnce(
  { store: spec, sessionId }: { store: StoreSpec; sessionId: string },
  text: string,
  seen: Recorded[],
): Promise<boolean> {
  const store = storeOf(spec);
  const beforeRead = process.hrtime.bigint();
  const parent = await store.getSnapshot({ sessionId });
  const leaf = parent?.snapshotId ?? null;
  seen.push(recorded('read', leaf, beforeRead));
  const beforeSave = process.hrtime.bigint();
  const save = store.saveSnapshot(undefined, () => turn(sessionId, parent, text), { expectedLeafId: leaf });
  const outcome = await outcomeOf(save);
  if (outcome.kind === 'refused') throw new Error(`a turn was refused: ${outcome.status} ${outcome.message}`);
  const isSaved = outcome.kind === 'saved';
  seen.push(recorded(isSaved ? 'save' : 'read', isSaved ? outcome.id : outcome.actual, beforeSave));
  return isSaved;
}

function recorded(kind: 'save' | 'read', leaf: string | null, start: bigint): Recorded {
  return { kind, leaf, start: String(start), end: String(process.hrtime.bigint()) };
}

/** The `items` without one equal item for each of `others`. */
function subtract(items: readonly string[], others: readonly string[]): string[] {
  const left = [...items];
  for (const other of others) {
    const at = left.indexOf(other);
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}
