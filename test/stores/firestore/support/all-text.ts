import type { DocumentReference, Firestore } from '@google-cloud/firestore';
import { unpackJson } from '../../../../stores/firestore/format/packed-text.ts';

/** All data below collections with this prefix, as text: names, fields, and the content of packed bytes. */
export async function textOfDocuments(db: Firestore | DocumentReference, prefix = ''): Promise<string> {
  const collections = (await db.listCollections()).filter(({ id }) => id.startsWith(prefix));
  const found = await Promise.all(
    collections.map(async (collection) => {
      const refs = await collection.listDocuments();
      return Promise.all(
        refs.map(async (ref) => {
          const data = (await ref.get()).data();
          return `${ref.path}\n${JSON.stringify(data, textOfBytes)}\n${await textOfDocuments(ref)}`;
        }),
      );
    }),
  );
  return found.flat().join('\n');
}

function textOfBytes(_key: string, value: unknown): unknown {
  const { type, data } = (value ?? {}) as { type?: unknown; data?: number[] };
  if (type !== 'Buffer') return value;
  const bytes = Buffer.from(data!);
  try {
    return unpackJson(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}
