/** The cost of privacy: a store turn with and without redaction and encryption, and erasing a user on Firestore. */
import { join } from 'node:path';
import { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { eraseUser } from 'genkitx-agents/privacy';
import { allDocuments } from '../test/stores/firestore/support/at-rest.ts';
import { plantUser } from '../test/stores/firestore/support/plant-user.ts';
import { trafficOf } from '../test/stores/firestore/support/transport.ts';
import type { ContenderSpec } from './contender.ts';
import { useEmulator } from './firestore.ts';
import { bytesAtRest, makeFolder, single, spread } from './measure.ts';
import { race, withContenders, type Contender } from './race.ts';
import type { Report } from './report.ts';

/** The number of turns of a median, including checkpoints and artifacts. */
const WINDOW = 100;
/** The goals apply to a session of this many turns. */
const LONG = 1000;

/** Turns like in our runtime: the earlier part of a state is the state that was read. */
export async function benchPrivateTurns(report: Report, turns: number): Promise<void> {
  const folder = makeFolder();
  const spec = (name: string): ContenderSpec & { folder: string } => ({
    name,
    kind: 'file',
    folder: join(folder, name),
    options: { durability: 'full' },
    states: 'read',
  });
  const [withBoth, neither] = [{ ...spec('private'), isPrivate: true }, spec('plain')];
  await withContenders([withBoth, neither], async (contenders) => {
    const [ours, plain] = contenders as [Contender, Contender];
    report.start('files, redacted and encrypted', turns);
    const searched: number[] = [0];
    while (ours.times.length < turns) {
      await race(contenders, Math.min(WINDOW, turns - ours.times.length), report);
      searched.push(await ours.ask({ do: 'searched' }));
    }
    const added = searched.slice(1).map((characters, i) => characters - searched[i]!);
    const peer = 'neither';
    const sizes = await Promise.all([withBoth, neither].map(async ({ folder: of }) => (await bytesAtRest(of)).bytes));
    report.add(
      {
        name: `files 'full', redacted and encrypted, store turn ${turns}`,
        unit: 'ms',
        ours: spread(ours.times.slice(-WINDOW)),
        theirs: spread(plain.times.slice(-WINDOW)),
        peer,
        ...(turns >= LONG && { goal: { atMostOfTheirs: 1.5 } }),
      },
      {
        name: `files, redacted and encrypted, bytes after ${turns} turns`,
        unit: 'bytes',
        ours: single(sizes[0]!),
        theirs: single(sizes[1]!),
        peer,
        goal: { atMostOfTheirs: 1.1 },
      },
      {
        name: `characters that a rule searches in a turn, turns ${turns - WINDOW + 1} to ${turns}`,
        unit: 'characters',
        ours: single(added.at(-1)! / WINDOW),
        theirs: single(added[0]! / WINDOW),
        peer: `turns 1 to ${WINDOW}`,
        ...(turns >= LONG && { goal: { atMostOfTheirs: 1.1 } }),
      },
    );
  });
}

/** Erases a user. The user has one session of ten turns and a record for each turn of the other benches. */
export async function benchErase(report: Report, sessions: number): Promise<void> {
  await useEmulator();
  const db = new Firestore({ projectId: 'demo-erase' });
  try {
    report.start('Firestore, a user to erase', sessions);
    await plantUser(new FirestoreSessionStore({ db }), {
      userId: 'ada',
      sessions,
      onSession: () => report.progress(1),
    });
    const documents = (await allDocuments(db)).length;
    const { rpcs } = await trafficOf(() => eraseUser(new FirestoreSessionStore({ db }), { userId: 'ada' }));
    report.add({
      name: `Firestore, erasing a user of ${sessions} sessions, requests for 100 documents`,
      unit: 'requests',
      ours: single((rpcs * 100) / documents),
      ...(sessions >= LONG && { goal: { atMost: 2 } }),
    });
  } finally {
    await db.terminate();
  }
}
