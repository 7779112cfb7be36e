import type { Firestore } from 'firebase-admin/firestore';

/** All known users. They may have background runs that must be taken over. */
export class Background {
  readonly #users: FirebaseFirestore.CollectionReference;
  /** The users that this instance has already stored. */
  readonly #noted = new Set<string>();

  constructor(db: Firestore) {
    this.#users = db.collection('support-background');
  }

  async note(uid: string): Promise<void> {
    if (this.#noted.has(uid)) return;
    await this.#users.doc(`u-${encodeURIComponent(uid)}`).set({ lastAt: new Date().toISOString() });
    this.#noted.add(uid);
  }

  async users(): Promise<string[]> {
    return (await this.#users.listDocuments()).map(({ id }) => decodeURIComponent(id.slice(2)));
  }
}
