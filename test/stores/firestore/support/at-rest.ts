import { readFileSync } from 'node:fs';
import {
  Timestamp,
  type DocumentData,
  type DocumentReference,
  type Firestore,
  type QueryDocumentSnapshot,
} from '@google-cloud/firestore';

/** The content of a database. */
export interface AtRest {
  documents: number;
  /** By Firestore's rules of storage size, without indexes. */
  bytes: number;
  indexEntries: number;
}

interface FieldOverride {
  collectionGroup: string;
  fieldPath: string;
  indexes: unknown[];
}

const { fieldOverrides } = JSON.parse(
  readFileSync(new URL('../../../../firestore.indexes.json', import.meta.url), 'utf8'),
) as { fieldOverrides: FieldOverride[] };

/** Every document of the database, in all collections. */
export async function allDocuments(db: Firestore | DocumentReference): Promise<QueryDocumentSnapshot[]> {
  const collections = await db.listCollections();
  const found = await Promise.all(
    collections.map(async (collection) => {
      const { docs } = await collection.get();
      // The store has collections only below the names of tenants, which are not documents.
      const names = new Set(docs.map((document) => document.id));
      const tenants = (await collection.listDocuments()).filter((ref) => !names.has(ref.id));
      return [docs, ...(await Promise.all(tenants.map((ref) => allDocuments(ref))))].flat();
    }),
  );
  return found.flat();
}

/** @param options `hasExemptions: false` counts without exemptions from Firestore's automatic indexes. */
export async function measureAtRest(db: Firestore, options = { hasExemptions: true }): Promise<AtRest> {
  const documents = await allDocuments(db);
  const result: AtRest = { documents: documents.length, bytes: 0, indexEntries: 0 };
  for (const document of documents) {
    result.bytes += nameSize(document.ref.path) + 32 + mapSize(document.data());
    const data = document.data();
    result.indexEntries += options.hasExemptions ? indexEntries(document.ref.parent.id, data) : automaticEntries(data);
  }
  return result;
}

function indexEntries(group: string, data: DocumentData): number {
  let entries = 0;
  for (const name of Object.keys(data)) {
    const find = (path: string): FieldOverride | undefined =>
      fieldOverrides.find((one) => one.collectionGroup === group && one.fieldPath === path);
    entries += (find(name) ?? find('*'))!.indexes.length;
  }
  return entries;
}

/** Without exemptions each value is indexed in both directions, and each element of an array once. */
function automaticEntries(value: unknown): number {
  if (Array.isArray(value)) return 2 + value.length;
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return 2;
  return Object.values(value).reduce<number>((sum, member) => sum + automaticEntries(member), 0);
}

function nameSize(path: string): number {
  return path.split('/').reduce((sum, segment) => sum + Buffer.byteLength(segment) + 1, 16);
}

function mapSize(data: DocumentData): number {
  return Object.entries(data).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + 1 + sizeOf(value), 0);
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + 1;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value === 'boolean' || value === null) return 1;
  if (typeof value === 'number' || value instanceof Timestamp) return 8;
  if (Array.isArray(value)) return value.reduce<number>((sum, element) => sum + sizeOf(element), 0);
  return mapSize(value as DocumentData);
}
