/** The script of a process that goes on with a conversation until it is killed. */
import type { SessionStore } from 'genkitx-agents';

/** Where the session is: a folder, or a project of the emulator that the environment names. */
export type TalkerPlace = { readonly folder: string } | { readonly project: string };

export interface TalkerSpec {
  readonly place: TalkerPlace;
  readonly seed: number;
  /** How far its clock is ahead, in ms. */
  readonly aheadMs: number;
}

const { place, seed, ...spec } = JSON.parse(process.argv[2]!) as TalkerSpec;
let { aheadMs } = spec;

const RealDate = Date;
// Before anything reads the time.
globalThis.Date = class extends RealDate {
  constructor(time: number | string = RealDate.now() + aheadMs) {
    super(time);
  }
  static override now(): number {
    return RealDate.now() + aheadMs;
  }
} as DateConstructor;

const { Firestore } = await import('@google-cloud/firestore');
const { FileSessionStore } = await import('genkitx-agents');
const { FirestoreSessionStore } = await import('genkitx-agents/google-cloud');
const { openTalker } = await import('./talker.ts');

const store: SessionStore =
  'folder' in place
    ? new FileSessionStore(place.folder)
    : new FirestoreSessionStore({ db: new Firestore({ projectId: place.project }) });
process.on('disconnect', () => process.exit());
const takeTurn = openTalker({
  store,
  seed,
  note: (event) => process.send!(event),
  pass: (ms) => (aheadMs += ms),
});
for (;;) await takeTurn();
