import type { Firestore } from 'firebase-admin/firestore';

/** Who has ever sent a turn into the background: whose runs are to be looked after. */
export class Background {
  readonly #users: FirebaseFirestore.CollectionReference;

  constructor(db: Firestore) {
    this.#users = db.collection('support-background');
  }

  async note(uid: string): Promise<void> {
    await this.#users.doc(`u-${encodeURIComponent(uid)}`).set({ lastAt: new Date().toISOString() });
  }

  async users(): Promise<string[]> {
    return (await this.#users.listDocuments()).map(({ id }) => decodeURIComponent(id.slice(2)));
  }
}
