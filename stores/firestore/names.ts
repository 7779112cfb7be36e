import { createHash } from 'node:crypto';

/** Ids that are document ids as they are: printable ASCII without slashes. Genkit's own store names its documents so. */
const PLAIN = /^[A-Za-z0-9][ -.0-~]{0,299}$/;

/**
 * The document id for an id of the contract: two ids never have the same, and none leads anywhere else. Most stand for themselves; any
 * other is `~` and the SHA-256 of its UTF-16 code units, so that lone surrogates, slashes, reserved names and long ids do no harm.
 */
export function documentId(id: string): string {
  return PLAIN.test(id) ? id : `~${digest(Buffer.from(id, 'utf16le'))}`;
}

/** How indexed fields and shard names call a session, a snapshot or a parent: 120 bits of hash, always 20 characters. */
export function keyOf(kind: 'session' | 'snapshot', id: string): string {
  const hash = createHash('sha256').update(`${kind}:`).update(Buffer.from(id, 'utf16le'));
  return hash.digest('base64url').slice(0, 20);
}

/** Whose shards, and whose order, a snapshot's are: its session's, or its own when it has none. */
export function ownerKey(sessionId: string | undefined, snapshotId: string): string {
  return sessionId === undefined ? keyOf('snapshot', snapshotId) : keyOf('session', sessionId);
}

/** The name of a shard by what is in it, and by how long it is kept: two that are kept for different times are two. */
export function shardName(owner: string, content: Buffer, life?: number): string {
  const named = life === undefined ? content : Buffer.concat([content, Buffer.from(`\n${life}`)]);
  return `s${owner}-${digest(named).slice(0, 22)}`;
}

/** The owner in a shard's name; `undefined` for a document that this store did not name. */
export function ownerOfShard(name: string): string | undefined {
  return /^s([\w-]{20})-[\w-]{22}$/.exec(name)?.[1];
}

/** The document of a record; what it is the record of stands in it. */
export function recordName(tenant: string, key: string): string {
  return `r${digest(Buffer.from(JSON.stringify([tenant, key]), 'utf16le'))}`;
}

const SEQ_DIGITS = 12;

/** Orders the snapshots of an owner by their first saves; indexed. */
export function orderKey(owner: string, seq: number): string {
  return `${owner}:${String(seq).padStart(SEQ_DIGITS, '0')}`;
}

/** Bounds of the order keys of an owner, from a place on. */
export function orderRange(owner: string, fromSeq = 0): { from: string; below: string } {
  return { from: orderKey(owner, fromSeq), below: `${owner};` };
}

/** The owner of the order in which snapshots without a session name each other as parents. No session has this id. */
export const ALONE = keyOf('session', '');

/** Finds the children of a snapshot; indexed. */
export function parentKey(owner: string, parentId: string): string {
  return `${owner}:${keyOf('snapshot', parentId)}`;
}

function digest(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url');
}
