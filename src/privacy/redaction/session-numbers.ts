import { createHmac } from 'node:crypto';
import type { RecordStore, SessionStoreOptions } from '../../store/contract.ts';
import { HashNumbering, type NumberedHashes } from '../rules/numbering.ts';
import type { Numbering } from '../rules/types.ts';

/** The kind of the session records that redaction keeps: the numbers of values, and seals. */
export const PRIVACY_RECORDS = 'privacy';
const NUMBERS = 'numbers';

/** A numbering, and how to store what was added to it. */
export interface OpenNumbers {
  readonly numbering: Numbering;
  /** @throws `ABORTED` when another process has added numbers in the meantime. */
  readonly save: () => Promise<void>;
}

/** The numbers that the values of a session have, as the store has them now. */
export async function openSessionNumbers(
  store: RecordStore,
  secret: Uint8Array,
  session: SessionStoreOptions & { sessionId: string },
): Promise<OpenNumbers> {
  const place = { sessionId: session.sessionId, context: session.context, kind: PRIVACY_RECORDS };
  const [record] = await store.readRecords({ ...place, keys: [NUMBERS] });
  const hashes = (record?.value ?? {}) as NumberedHashes;
  const before = countOf(hashes);
  const numbering = new HashNumbering({ secret, hashes });
  const save = async (): Promise<void> => {
    if (countOf(numbering.hashes) === before) return;
    const value = { ...numbering.hashes };
    await store.writeRecord({ ...place, key: NUMBERS, value, expectedRevision: record?.revision ?? null });
  };
  return { numbering, save };
}

function countOf(hashes: NumberedHashes): number {
  return Object.values(hashes).reduce((sum, list) => sum + list.length, 0);
}

/**
 * Numbers for the records of users and apps: many sessions read and write them, and each session numbers its values for itself. So here the
 * number is made from the value, with the secret, and nothing is stored.
 */
export class SharedNumbering implements Numbering {
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  numberOf(kind: string, canonical: string): number {
    const hash = createHmac('sha256', this.#secret)
      .update(JSON.stringify(['shared', kind, canonical]))
      .digest();
    return 10_000 + (hash.readUInt32BE(0) % 90_000);
  }
}
