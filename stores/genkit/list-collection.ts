import type { Firestore } from '@google-cloud/firestore';
import type { SessionLister } from '../../src/store/migrate/copy-sessions.ts';
import { DEFAULT_TENANT } from '../../src/store/name-tenant.ts';

/** Options of {@link listGenkitCollection}. */
export interface ListGenkitCollectionOptions {
  /** The store's collection. Default: `'genkit-sessions'`. */
  collection?: string;
  /** The result of the store's `snapshotPathPrefix` for the tenant; it may contain slashes. Default: `'global'`. */
  prefix?: string;
}

/** Pointers of one request. */
const PAGE = 300;

/**
 * Finds the sessions that Genkit's own `FirestoreSessionStore` wrote, for `copySessions`. Costs one read for each session's pointer, and one for
 * each snapshot; states are not read.
 *
 * @param db The store's client.
 */
export function listGenkitCollection(db: Firestore, options: ListGenkitCollectionOptions = {}): SessionLister {
  const { collection = 'genkit-sessions', prefix = DEFAULT_TENANT } = options;
  return async function* sessions() {
    const snapshots = db.collection(`${collection}/${prefix}/snapshots`);
    const pointers = db
      .collection(`${collection}-pointers/${prefix}/pointers`)
      .orderBy('__name__')
      .select()
      .limit(PAGE);
    for (let page = await pointers.get(); !page.empty; page = await pointers.startAfter(page.docs.at(-1)!).get()) {
      for (const { id: sessionId } of page.docs) {
        const found = await snapshots.where('sessionId', '==', sessionId).select().get();
        yield { sessionId, snapshotIds: found.docs.map((document) => document.id) };
      }
    }
  };
}
