export {
  FirestoreSessionStore,
  type FirestoreSessionStoreOptions,
} from '../stores/firestore/firestore-session-store.ts';
export type { EraseResult } from '../stores/firestore/remove/erase.ts';
export type { FirestoreUsage } from '../stores/firestore/meter.ts';
