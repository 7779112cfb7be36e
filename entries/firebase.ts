/** The session store and the memory store for the Cloud Firestore of a Firebase app. */
export {
  FirestoreMemoryStore,
  type FirestoreMemoryStoreOptions,
  FirestoreSessionStore,
  type FirestoreSessionStoreOptions,
} from '../plugins/firebase.ts';
export type { EraseResult, FirestoreUsage } from '../plugins/google-cloud.ts';
