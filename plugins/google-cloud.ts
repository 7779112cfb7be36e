export {
  FirestoreSessionStore,
  type FirestoreSessionStoreOptions,
} from '../stores/firestore/firestore-session-store.ts';
export type { EraseResult } from '../stores/firestore/remove/erase.ts';
export type { FirestoreUsage } from '../stores/firestore/meter.ts';
export {
  FirestoreMemoryStore,
  type FirestoreMemoryStoreOptions,
} from '../stores/firestore/memory/firestore-memory-store.ts';
