import type { Firestore } from 'firebase-admin/firestore';

/** The users who were ever here: they may have runs in the background that are to be looked after. */
export class Background {
  readonly #users: FirebaseFirestore.CollectionReference;
  /** Those whom this instance wrote down. */
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
