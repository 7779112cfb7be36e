/** The stores for the Cloud Firestore of a Firebase app: of sessions, and of memories. */
export {
  FirestoreMemoryStore,
  type FirestoreMemoryStoreOptions,
  FirestoreSessionStore,
  type FirestoreSessionStoreOptions,
} from '../plugins/firebase.ts';
export type { EraseResult, FirestoreUsage } from '../plugins/google-cloud.ts';
