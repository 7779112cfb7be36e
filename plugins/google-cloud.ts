export {
  FirestoreSessionStore,
  type FirestoreSessionStoreOptions,
} from '../stores/firestore/firestore-session-store.ts';
export type { EraseResult } from '../stores/firestore/erase.ts';
export type { FirestoreUsage } from '../stores/firestore/meter.ts';
export type { PruneProgress } from '../stores/firestore/prune.ts';
