/** The script of a process that goes on with a conversation until it is killed. */
import { Firestore } from '@google-cloud/firestore';
import { FileSessionStore, type SessionStore } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { openTalker } from './talker.ts';

/** Where the session is: a folder, or a project of the emulator that the environment names. */
export type TalkerPlace = { readonly folder: string } | { readonly project: string };

const { place, seed } = JSON.parse(process.argv[2]!) as { place: TalkerPlace; seed: number };
const store: SessionStore =
  'folder' in place
    ? new FileSessionStore(place.folder)
    : new FirestoreSessionStore({ db: new Firestore({ projectId: place.project }) });
process.on('disconnect', () => process.exit());
const takeTurn = openTalker(store, seed, (event) => process.send!(event));
for (;;) await takeTurn();
