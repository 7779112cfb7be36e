import type { DocumentData } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import { failedPrecondition } from '../../../src/errors.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';

/** The format version of data in clear. */
export const FORMAT = 1;
/** The format version of encrypted data. Documents of higher versions are refused. */
export const SEALED_FORMAT = 2;

/**
 * Every document of this store carries its format version; those of Genkit's own store carry none.
 *
 * @param document Describes the document, as the beginning of a sentence.
 * @throws `FAILED_PRECONDITION` when another store, or a newer version of this one, wrote the document.
 */
export function assertOwnDocument(data: DocumentData, document: string): void {
  if (typeof data['v'] !== 'number') throw foreignLayout();
  assertReadable(data['v'], SEALED_FORMAT, document);
}

export function foreignLayout(): GenkitError {
  return failedPrecondition(
    "The collection holds data of another store, for example of Genkit's own FirestoreSessionStore; it is left as it is. Give this store " +
      'another collection, and read the old data with migratingStore({ from, to }), where from is the other store and to is this one.',
  );
}
