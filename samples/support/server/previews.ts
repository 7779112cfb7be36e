import type { ActionContext, MessageData } from 'genkit';
import type { SnapshotStore } from 'genkitx-agents';
import type { SupportState } from '../agent/state.ts';
import type { Preview } from './api-types.ts';

const LENGTH = 120;
/** A preview is some hundred bytes. */
const KEPT = 20_000;
/** A preview costs a state, which can be large: no more than this many are in memory at a time for one request. */
const READ_AT_ONCE = 4;
/** So that a request for a very long conversation is answered soon; the next one reads on where this one ended. */
const READ_AT_MOST = 500;

/** Of a snapshot that can't be read, or was not read yet. */
export const NO_PREVIEW: Preview = { title: '', asked: '', tools: [], turn: 0, isWaiting: false };

/**
 * One line about a snapshot. Lists of snapshots come without their states, so each state is read once; a snapshot that is settled does not
 * change any more, and its line is kept.
 */
export class Previews {
  readonly #store: SnapshotStore<SupportState>;
  readonly #kept = new Map<string, Preview>();

  constructor(store: SnapshotStore<SupportState>) {
    this.#store = store;
  }

  /**
   * @param snapshotIds The most wanted first.
   * @returns What is known of them, by id: of very many, not all at first.
   */
  async of(snapshotIds: readonly string[], context?: ActionContext): Promise<ReadonlyMap<string, Preview>> {
    const found = new Map<string, Preview>();
    const missing: string[] = [];
    for (const id of snapshotIds) {
      const kept = this.#kept.get(keyOf(id, context));
      if (kept) found.set(id, kept);
      else missing.push(id);
    }
    // The readers share the iterator: each takes the next id that none has taken.
    const ids = missing.slice(0, READ_AT_MOST).values();
    const read = async () => {
      for (const id of ids) found.set(id, await this.#read(id, context));
    };
    await Promise.all(Array.from({ length: READ_AT_ONCE }, read));
    return found;
  }

  async #read(snapshotId: string, context?: ActionContext): Promise<Preview> {
    // One that can't be read must not hide the others.
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

/** Two users may have snapshots of one id. */
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
