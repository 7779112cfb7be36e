import { EventEmitter } from 'node:events';
import type { ActionContext } from 'genkit';
import type { SnapshotStore } from 'genkitx-agents';

/** Notifies the owners of changed sessions. It notices only the saves of this process. */
export class SessionChanges {
  readonly #emitter = new EventEmitter().setMaxListeners(0);

  /** Observes the saves of `store` from now on. */
  follow<State>(store: SnapshotStore<State>): void {
    const save = store.saveSnapshot.bind(store);
    store.saveSnapshot = async (snapshotId, mutator, options) => {
      let sessionId: string | undefined;
      const saved = await save(
        snapshotId,
        (current) => {
          const next = mutator(current);
          sessionId = next?.sessionId ?? current?.sessionId;
          return next;
        },
        options,
      );
      if (saved !== null && sessionId !== undefined) this.#emitter.emit(userOf(options?.context), sessionId);
      return saved;
    };
  }

  /** Calls `listener` for each change of a session of the caller. Returns a function that ends this. */
  listen(context: ActionContext, listener: (sessionId: string) => void): () => void {
    const user = userOf(context);
    this.#emitter.on(user, listener);
    return () => this.#emitter.off(user, listener);
  }
}

function userOf(context: ActionContext | undefined): string {
  return `user:${(context?.auth as { uid?: string } | undefined)?.uid ?? ''}`;
}
