import type { MessageData } from 'genkit';
import type { SnapshotStore } from 'genkitx-agents';
import type { SupportState } from '../agent/state.ts';
import type { Preview } from './api-types.ts';

const LENGTH = 120;
const KEPT = 2_000;
const NONE: Preview = { title: '', asked: '', replied: '', tools: [] };

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

  async of(snapshotId: string): Promise<Preview> {
    const kept = this.#kept.get(snapshotId);
    if (kept) return kept;
    // One that can't be read must not hide the others.
    const snapshot = await this.#store.getSnapshot({ snapshotId }).catch(() => undefined);
    const preview = snapshot ? describe(snapshot.state?.messages ?? []) : NONE;
    if (snapshot && snapshot.status !== 'pending') this.#keep(snapshotId, preview);
    return preview;
  }

  #keep(snapshotId: string, preview: Preview): void {
    this.#kept.set(snapshotId, preview);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size > KEPT && !oldest.done) this.#kept.delete(oldest.value);
  }
}

function describe(messages: readonly MessageData[]): Preview {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === 'user'));
  const parts = turn.flatMap(({ content }) => content);
  return {
    title: textOf(messages.find(({ role }) => role === 'user')),
    asked: textOf(turn[0]),
    replied: turn.length > 1 ? textOf(turn.at(-1)) : '',
    tools: parts.flatMap((part) => part.toolRequest?.name ?? []),
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
