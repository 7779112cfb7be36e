/** The session store and the memory store for Cloud Firestore. */
export {
  FirestoreMemoryStore,
  type FirestoreMemoryStoreOptions,
  FirestoreSessionStore,
  type EraseResult,
  type FirestoreSessionStoreOptions,
  type FirestoreUsage,
} from '../plugins/google-cloud.ts';
export { listGenkitCollection, type ListGenkitCollectionOptions } from '../stores/genkit/list-collection.ts';
