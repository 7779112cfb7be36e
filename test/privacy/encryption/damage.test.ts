import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { entriesBelow } from '../../stores/file/support/folders.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { Random } from '../../support/random.ts';
import { scale, seed } from '../../support/scale.ts';
import { ADA, encryptionWith, saveWithoutSession, fillSession, readSession, type Store } from './support.ts';

/** Something that was encrypted, where it is in a file. */
interface Piece {
  readonly path: string;
  /** Of base64 text; a shard is all of its file. */
  readonly range?: readonly [start: number, end: number];
}

const BASE64 = /"(?:genkitx-agents\/sealed|genkitx-agents\/sealed-state|sealed)":"([^"]*)"/g;

function piecesBelow(folder: string): Piece[] {
  const files = entriesBelow(folder).filter((path) => statSync(join(folder, path)).isFile());
  return files.flatMap((path): Piece[] => {
    if (/[0-9a-f]{16}-[0-9a-f]{64}$/.test(path)) return [{ path }];
    const text = readFileSync(join(folder, path), 'latin1');
    return [...text.matchAll(BASE64)].map((match) => {
      const start = match.index + match[0].indexOf(match[1]!);
      return { path, range: [start, start + match[1]!.length] };
    });
  });
}

function read(folder: string, { path, range }: Piece): Buffer {
  const bytes = readFileSync(join(folder, path));
  return range ? Buffer.from(bytes.toString('latin1', ...range), 'base64') : bytes;
}

function write(folder: string, { path, range }: Piece, sealed: Buffer): void {
  if (!range) return writeFileSync(join(folder, path), sealed);
  const text = readFileSync(join(folder, path), 'latin1');
  const damaged = text.slice(0, range[0]) + sealed.toString('base64') + text.slice(range[1]);
  writeFileSync(join(folder, path), damaged, 'latin1');
}

/** Damages of one piece. */
const DAMAGES: Readonly<Record<string, (sealed: Buffer, random: Random) => Buffer>> = {
  'a flipped bit': (sealed, random) => {
    const damaged = Buffer.from(sealed);
    damaged[random.below(damaged.length)]! ^= 1 << random.below(8);
    return damaged;
  },
  'cut short': (sealed, random) => sealed.subarray(0, random.below(sealed.length)),
  'longer than it was': (sealed, random) => Buffer.concat([sealed, Buffer.alloc(1 + random.below(20))]),
  zeros: (sealed, random) => Buffer.from(sealed).fill(0, random.below(sealed.length)),
};

/** All readable data, by session, of a snapshot without one, and of a record. */
async function readAll(store: Store): Promise<Record<string, Record<string, unknown>>> {
  const settled = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
  return {
    one: await readSession(store, 'one'),
    two: await readSession(store, 'two'),
    rest: {
      alone: await settled(store.getSnapshot({ snapshotId: 'alone' })),
      ada: await settled(store.readScopes({ scopes: [ADA] })),
    },
  };
}

/** The names that an error of each of them may contain. */
const NAMES = { one: '"one"', two: '"two"', rest: /"alone"|"ada"/ };

describe('damaged ciphertext: files', () => {
  const count = scale(40, 3_500);

  it(`${count} damages: each snapshot and record reads as before or answers DATA_LOSS with the session, others are not affected (seed ${seed})`, async () => {
    const folder = temporaryFolder();
    const encryption = encryptionWith('a');
    const open = (): Store => new FileSessionStore(folder, { checkpointInterval: 2, durability: 'fast', encryption });
    const writer = open();
    for (const session of ['one', 'two']) await fillSession(writer, session, 3, false);
    await saveWithoutSession(writer, 'alone');
    await writer.close();
    const whole = await readAll(open());
    const pieces = piecesBelow(folder);
    const random = new Random(seed);
    let lost = 0;
    for (let at = 0; at < count; at++) {
      const piece = random.pick(pieces);
      const other = random.pick(pieces);
      const [sealed, swapped] = [read(folder, piece), read(folder, other)];
      const damage = random.pick([...Object.keys(DAMAGES), 'swapped', 'swapped']);
      const restore = [...new Set([piece.path, other.path])].map(
        (path) => [path, readFileSync(join(folder, path))] as const,
      );
      const isSwap = damage === 'swapped';
      if (!isSwap) write(folder, piece, DAMAGES[damage]!(sealed, random));
      else if (piece.path === other.path) continue;
      else {
        write(folder, piece, swapped);
        write(folder, other, sealed);
      }
      const touched = isSwap ? [piece.path, other.path] : [piece.path];
      const store = open();
      const place = `${damage} of ${touched.join(' and ')} (damage ${at})`;
      const answers = await readAll(store);
      for (const owner of ['one', 'two', 'rest'] as const) {
        for (const [name, before] of Object.entries(whole[owner]!)) {
          const answer = answers[owner]![name];
          if (!(answer instanceof GenkitError)) {
            expect(answer, `${name} after ${place}`).toEqual(before);
            continue;
          }
          lost++;
          expect(answer.status, `${name} after ${place}`).toBe('DATA_LOSS');
          expect(answer.message, `${name} after ${place}`).toMatch(NAMES[owner]);
          const isTouched = owner === 'rest' || touched.some((path) => path.includes(owner));
          expect(isTouched, `${name} after ${place}`).toBe(true);
        }
      }
      expect((await store.listSessions()).items.map((item) => item.leafId).toSorted(), place).toEqual([
        'one-3',
        'two-3',
      ]);
      await store.close();
      for (const [path, bytes] of restore) writeFileSync(join(folder, path), bytes);
    }
    // At least one read reports each damage.
    expect(lost).toBeGreaterThan(count);
    expect(await readAll(open())).toEqual(whole);
  });
});
