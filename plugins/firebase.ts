import type { App } from 'firebase-admin/app';
import { getFirestore, type Firestore } from 'firebase-admin/firestore';
import { invalidArgument } from '../src/errors.ts';
import {
  FirestoreSessionStore as BaseStore,
  type FirestoreSessionStoreOptions as BaseOptions,
} from '../stores/firestore/firestore-session-store.ts';
import {
  FirestoreMemoryStore as BaseMemories,
  type FirestoreMemoryStoreOptions as BaseMemoryOptions,
} from '../stores/firestore/memory/firestore-memory-store.ts';

/** Options of {@link FirestoreSessionStore}: those of `genkitx-agents/google-cloud`, and the Firebase app. */
export interface FirestoreSessionStoreOptions extends BaseOptions {
  /** The Firebase app whose default database is used, in place of `db`. Default: the default app, which must be initialised. */
  firebaseApp?: App;
}

/**
 * Keeps snapshots in the Cloud Firestore of a Firebase app.
 *
 * @throws `INVALID_ARGUMENT` when both `firebaseApp` and `db` are given.
 * @example
 * import { initializeApp } from 'firebase-admin/app';
 * import { FirestoreSessionStore } from 'genkitx-agents/firebase';
 *
 * const store = new FirestoreSessionStore({ firebaseApp: initializeApp() });
 */
export class FirestoreSessionStore<S = unknown> extends BaseStore<S> {
  constructor(options: FirestoreSessionStoreOptions = {}) {
    const { firebaseApp, ...rest } = options;
    if (firebaseApp && rest.db) throw invalidArgument('FirestoreSessionStore takes firebaseApp or db, not both.');
    super({ ...rest, db: rest.db ?? databaseOf(firebaseApp) });
  }
}

/** Options of {@link FirestoreMemoryStore}: those of `genkitx-agents/google-cloud`, and the Firebase app. */
export interface FirestoreMemoryStoreOptions extends BaseMemoryOptions {
  /** The Firebase app whose default database is used, in place of `db`. Default: the default app, which must be initialised. */
  firebaseApp?: App;
}

/**
 * Keeps memories in the Cloud Firestore of a Firebase app.
 *
 * @throws `INVALID_ARGUMENT` when both `firebaseApp` and `db` are given.
 * @example
 * import { initializeApp } from 'firebase-admin/app';
 * import { FirestoreMemoryStore } from 'genkitx-agents/firebase';
 *
 * const memories = new FirestoreMemoryStore({ firebaseApp: initializeApp() });
 */
export class FirestoreMemoryStore extends BaseMemories {
  constructor(options: FirestoreMemoryStoreOptions = {}) {
    const { firebaseApp, ...rest } = options;
    if (firebaseApp && rest.db) throw invalidArgument('FirestoreMemoryStore takes firebaseApp or db, not both.');
    super({ ...rest, db: rest.db ?? databaseOf(firebaseApp) });
  }
}

function databaseOf(app: App | undefined): Firestore {
  return app ? getFirestore(app) : getFirestore();
}
