import { Timestamp, type Firestore } from '@google-cloud/firestore';
import { allDocuments } from './at-rest.ts';

export const DAY = 86_400_000;

/** Makes the documents of sessions, and snapshots without a session, older: the store uses Firestore's clock. */
export async function passTime(db: Firestore, ms: number): Promise<void> {
  for (const document of await allDocuments(db)) {
    const older = Object.entries(document.data()).flatMap(([name, value]) =>
      ['until', 'expireAt', 'begun'].includes(name) && value
        ? [[name, Timestamp.fromMillis(value.toMillis() - ms)]]
        : [],
    );
    if (older.length > 0) await document.ref.update(Object.fromEntries(older));
  }
}

/** Removes expired documents like Firestore's TTL policy. */
export async function applyTtlPolicy(db: Firestore): Promise<void> {
  for (const document of await allDocuments(db)) {
    const expireAt = document.get('expireAt') as Timestamp | null | undefined;
    if (expireAt && expireAt.toMillis() <= Date.now()) await document.ref.delete();
  }
}
