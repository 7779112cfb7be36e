/** The session store for the Cloud Firestore of a Firebase app. */
export { FirestoreSessionStore, type FirestoreSessionStoreOptions } from '../plugins/firebase.ts';
export type { EraseResult, FirestoreUsage } from '../plugins/google-cloud.ts';
