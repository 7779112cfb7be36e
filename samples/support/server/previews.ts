import type { ActionContext, MessageData } from 'genkit';
import type { SnapshotStore } from 'genkitx-agents';
import type { SupportState } from '../agent/state.ts';
import type { Preview } from './api-types.ts';

const LENGTH = 120;
/** A preview has a few hundred bytes. */
const KEPT = 20_000;
/** A preview needs a whole state, which can be large: one request has at most this many in memory at a time. */
const READ_AT_ONCE = 4;
/** Limits the time of a request for a very long conversation; the next request continues from there. */
const READ_AT_MOST = 500;

/** For a snapshot that can't be read, or was not read yet. */
export const NO_PREVIEW: Preview = { title: '', asked: '', tools: [], turn: 0, isWaiting: false };

/**
 * One line about a snapshot. Lists of snapshots have no states, so each state is read once. A terminal snapshot does not change any more, so
 * its line is cached.
 */
export class Previews {
  readonly #store: SnapshotStore<SupportState>;
  readonly #kept = new Map<string, Preview>();

  constructor(store: SnapshotStore<SupportState>) {
    this.#store = store;
  }

  /**
   * @param snapshotIds The most wanted first.
   * @returns The known previews, by id. For very many snapshots, the first calls do not return all.
   */
  async of(snapshotIds: readonly string[], context?: ActionContext): Promise<ReadonlyMap<string, Preview>> {
    const found = new Map<string, Preview>();
    const missing: string[] = [];
    for (const id of snapshotIds) {
      const kept = this.#kept.get(keyOf(id, context));
      if (kept) found.set(id, kept);
      else missing.push(id);
    }
    // The readers share the iterator: each takes the next unread id.
    const ids = missing.slice(0, READ_AT_MOST).values();
    const read = async () => {
      for (const id of ids) found.set(id, await this.#read(id, context));
    };
    await Promise.all(Array.from({ length: READ_AT_ONCE }, read));
    return found;
  }

  async #read(snapshotId: string, context?: ActionContext): Promise<Preview> {
    // An unreadable snapshot must not hide the others.
    const snapshot = await this.#store.getSnapshot({ snapshotId, context }).catch(() => undefined);
    if (!snapshot) return NO_PREVIEW;
    const preview = describe(snapshot.state?.messages ?? []);
    if (snapshot.status !== 'pending') this.#keep(keyOf(snapshotId, context), preview);
    return preview;
  }

  #keep(key: string, preview: Preview): void {
    this.#kept.set(key, preview);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size > KEPT && !oldest.done) this.#kept.delete(oldest.value);
  }
}

/** Two users may have snapshots with the same id. */
function keyOf(snapshotId: string, context: ActionContext | undefined): string {
  return JSON.stringify([snapshotId, (context?.auth as { uid?: string } | undefined)?.uid]);
}

function describe(messages: readonly MessageData[]): Preview {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === 'user'));
  const parts = turn.flatMap(({ content }) => content);
  return {
    title: textOf(messages.find(({ role }) => role === 'user')),
    asked: textOf(turn[0]),
    tools: parts.flatMap((part) => part.toolRequest?.name ?? []),
    turn: messages.filter(({ role }) => role === 'user').length,
    isWaiting: messages.at(-1)?.content.some((part) => part.metadata?.['interrupt'] !== undefined) ?? false,
  };
}

function textOf(message: MessageData | undefined): string {
  const text = (message?.content ?? [])
    .map((part) => part.text ?? '')
    .join('')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('**', '')
    .trim();
  return text.length > LENGTH ? `${text.slice(0, LENGTH - 1)}…` : text;
}
