/** The session store for Cloud Firestore. */
export {
  FirestoreSessionStore,
  type EraseResult,
  type FirestoreSessionStoreOptions,
  type FirestoreUsage,
} from '../plugins/google-cloud.ts';
export { listGenkitCollection, type ListGenkitCollectionOptions } from '../stores/genkit/list-collection.ts';
