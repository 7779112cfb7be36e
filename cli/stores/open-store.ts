import type { SessionStore, SnapshotStore, StoreCapabilities } from 'genkitx-agents';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { openPlace, type Opened, type StoreOptions } from './open-place.ts';
import { importPackage } from './packages.ts';

/** An open session store. */
export type OpenStore = Opened<SnapshotStore>;

/**
 * Opens the session store that a command names.
 *
 * @param options.needs The capabilities that the command needs.
 * @param options.isNew Whether the directory of a file store may be missing; it is then created.
 * @throws WrongUse when there is no such store, or it can't do what the command needs.
 */
export function openStore(
  options: StoreOptions,
  io: Pick<Io, 'folder' | 'say'>,
  { needs, isNew = false }: { needs: readonly (keyof StoreCapabilities)[]; isNew?: boolean },
): Promise<OpenStore> {
  return openPlace<SnapshotStore>(options, io, {
    holds: 'sessions',
    isNew,
    ofExport(found) {
      assertStore(found, options.store, needs);
      return found;
    },
    async ofDirectory(directory, snapshotPathPrefix) {
      const { FileSessionStore } = await importPackage(() => import('genkitx-agents'));
      return new FileSessionStore(directory, { snapshotPathPrefix });
    },
    async ofCollection(place, snapshotPathPrefix) {
      const { FirestoreSessionStore } = await importPackage(() => import('genkitx-agents/google-cloud'));
      return new FirestoreSessionStore({ ...place, snapshotPathPrefix });
    },
  });
}

function assertStore(
  store: unknown,
  url: string,
  needs: readonly (keyof StoreCapabilities)[],
): asserts store is SnapshotStore {
  const { getSnapshot, saveSnapshot, capabilities } = (store ?? {}) as Partial<SnapshotStore & SessionStore>;
  if (typeof getSnapshot !== 'function' || typeof saveSnapshot !== 'function')
    throw new WrongUse(`'${url}' is not a session store.`);
  const missing = needs.filter((need) => !capabilities?.[need]);
  if (missing.length > 0) {
    throw new WrongUse(
      `The store '${url}' can't do what this command needs: it lacks the capabilities ${missing.join(', ')}.`,
    );
  }
}
