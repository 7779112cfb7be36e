import type { ErrorRecord } from '../client/errors.ts';
import type { AgentInput } from '../client/types.ts';

/** What a page keeps of a turn, for when it is loaded again and for the other tabs. */
export interface KeptTurnRecord {
  /** The snapshot that the turn continues from. Default: none, it begins the session. */
  parentId?: string;
  input: AgentInput;
  /** The snapshots that went on from the parent before. */
  known?: readonly string[];
  /** By which the server keeps what the turn streams. Default: not known yet, or not kept. */
  streamId?: string;
  /** The reply of `useChat` that the turn goes on with. Default: a new one. */
  reply?: unknown;
  /** Why the turn failed. Default: it runs. */
  error?: ErrorRecord;
}

/** The part of the browser's storage that is used. */
export type TurnStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The chats of this page; the browser tells the other tabs only. */
const listeners = new Set<(key: string, from: object) => void>();

/**
 * The running and the failed turns, one a session, as the browser keeps them. Nothing is kept of a session without an id, nor where the storage is
 * full or forbidden.
 */
export class KeptTurns {
  readonly #prefix: string;
  readonly #storage: TurnStorage | false | undefined;

  /** @param storage Default: `localStorage`. `false`: nothing is kept. */
  constructor(prefix: string, storage?: TurnStorage | false) {
    this.#prefix = prefix;
    this.#storage = storage;
  }

  read(sessionId: string | undefined): KeptTurnRecord | undefined {
    if (sessionId === undefined) return undefined;
    try {
      const kept = JSON.parse(this.#open()?.getItem(this.#key(sessionId)) ?? 'null') as KeptTurnRecord | null;
      return kept?.input ? kept : undefined;
    } catch {
      return undefined;
    }
  }

  /** @param turn `undefined`: nothing has to be kept any more. */
  write(sessionId: string | undefined, turn: KeptTurnRecord | undefined): void {
    if (sessionId === undefined) return;
    const key = this.#key(sessionId);
    try {
      if (turn) this.#open()?.setItem(key, JSON.stringify(turn));
      else this.#open()?.removeItem(key);
    } catch {
      // The turn runs all the same.
    }
    for (const notify of listeners) notify(key, this);
  }

  /** Calls back when another chat, of this page or of another tab, has written the turn of the session. */
  subscribe(sessionId: () => string | undefined, onChange: () => void): () => void {
    const notify = (key: string | null, from?: object) => {
      const id = sessionId();
      if (from !== this && id !== undefined && key === this.#key(id)) onChange();
    };
    const onStorage = ({ key }: StorageEvent) => notify(key);
    listeners.add(notify);
    globalThis.addEventListener?.('storage', onStorage);
    return () => {
      listeners.delete(notify);
      globalThis.removeEventListener?.('storage', onStorage);
    };
  }

  #key(sessionId: string): string {
    return `${this.#prefix}:${sessionId}`;
  }

  /** A browser may refuse even to name its storage. */
  #open(): TurnStorage | undefined {
    return this.#storage === undefined ? globalThis.localStorage : this.#storage || undefined;
  }
}
