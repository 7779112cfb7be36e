import type { ErrorRecord } from '../client/errors.ts';
import type { AgentInput } from '../client/types.ts';

/** The data of a turn that a page stores, for a reload and for other tabs. */
export interface KeptTurnRecord {
  /** The snapshot that the turn continues from. Default: none, it begins the session. */
  parentId?: string;
  input: AgentInput;
  /** The parent's children before the turn. */
  known?: readonly string[];
  /** The id of the turn's stream, if the server keeps it. Default: not known yet, or not kept. */
  streamId?: string;
  /** The reply of `useChat` that the turn continues. Default: a new one. */
  reply?: unknown;
  /** The error of a failed turn. Default: the turn is running. */
  error?: ErrorRecord;
}

/** The part of the browser's storage that is used. */
export type TurnStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The chats of this page. The browser notifies other tabs only. */
const listeners = new Set<(key: string, from: object) => void>();

/**
 * The running and failed turns, one for each session, in the browser's storage. Nothing is kept for a session without an id, or when the storage
 * is full or not allowed.
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

  /** @param turn `undefined` removes it. */
  write(sessionId: string | undefined, turn: KeptTurnRecord | undefined): void {
    if (sessionId === undefined) return;
    const key = this.#key(sessionId);
    try {
      if (turn) this.#open()?.setItem(key, JSON.stringify(turn));
      else this.#open()?.removeItem(key);
    } catch {
      // The turn continues without it.
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

  /** Throws in a browser that forbids access to its storage. */
  #open(): TurnStorage | undefined {
    return this.#storage === undefined ? globalThis.localStorage : this.#storage || undefined;
  }
}
