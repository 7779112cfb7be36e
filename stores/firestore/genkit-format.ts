/** What Genkit's own Firestore store (1.42) writes. It is read as it is, and becomes this store's own where this store writes. */
import type { DocumentData } from '@google-cloud/firestore';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import type { SnapshotHead } from './snapshot-document.ts';

/** A state that Genkit's store wrote: a whole one in numbered shards, and the snapshots whose patches lead on from it. */
export interface ForeignState {
  readonly kind: 'foreign';
  readonly checkpointId: string;
  readonly shardCount: number;
  /** From the one after the whole state to the snapshot itself; empty when it is whole. */
  readonly segment: readonly string[];
}

/** Of a snapshot what it has beside the state. */
const META_FIELDS = [
  'snapshotId',
  'sessionId',
  'parentId',
  'createdAt',
  'updatedAt',
  'status',
  'heartbeatAt',
  'finishReason',
  'error',
] as const;

/** All fields of a snapshot's document but its patch. */
export const FOREIGN_FIELDS = [...META_FIELDS, 'kind', 'checkpointId', 'checkpointShardCount', 'segmentPath'] as const;

/** The field with a snapshot's patch. */
export const FOREIGN_PATCH = 'statePatch';

/** Fields of a pointer's document. */
export const FOREIGN_POINTER_FIELDS = [
  'currentSnapshotId',
  'checkpointId',
  'checkpointShardCount',
  'segmentPath',
  'updatedAt',
] as const;

/** Whether Genkit's store wrote a snapshot's document. */
export function isForeign(data: DocumentData): boolean {
  return data['v'] === undefined && (data['kind'] === 'checkpoint' || data['kind'] === 'diff');
}

/** Whether Genkit's store wrote a pointer's document. */
export function isForeignPointer(data: DocumentData): boolean {
  return data['v'] === undefined && typeof data['currentSnapshotId'] === 'string';
}

export function foreignHead(data: DocumentData): SnapshotHead {
  const meta = Object.fromEntries(META_FIELDS.flatMap((name) => (name in data ? [[name, data[name]]] : [])));
  const place = /:(\d+)$/.exec(String(data['at'] ?? ''))?.[1];
  return {
    meta: meta as unknown as SnapshotMetadata,
    sessionId: data['sessionId'] as string,
    seq: place === undefined ? 0 : Number(place),
    rev: 0,
    by: [],
  };
}

export function foreignState(data: DocumentData): ForeignState {
  const { checkpointId, checkpointShardCount, segmentPath } = data as {
    checkpointId: string;
    checkpointShardCount: number;
    segmentPath: string[];
  };
  return { kind: 'foreign', checkpointId, shardCount: checkpointShardCount, segment: segmentPath };
}

/** The names of a whole state's shards. */
export function foreignShards({ checkpointId, shardCount }: ForeignState): string[] {
  return Array.from({ length: shardCount }, (_, index) => `${checkpointId}_${index}`);
}
