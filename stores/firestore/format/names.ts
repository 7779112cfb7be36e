import { createHash, randomBytes } from 'node:crypto';

/** Ids that are document ids unchanged: printable ASCII without slashes. */
const PLAIN = /^[A-Za-z0-9][ -.0-~]{0,299}$/;

/**
 * The document id for an id of the contract. Different ids have different document ids. Most ids are used unchanged; any other becomes
 * `~` and the SHA-256 of its UTF-16 code units, because of lone surrogates, slashes, reserved names and long ids.
 */
export function documentId(id: string): string {
  return PLAIN.test(id) ? id : `~${digest(Buffer.from(id, 'utf16le'))}`;
}

const KEY_LENGTH = 20;
const OWNER_LENGTH = KEY_LENGTH + 8;

/** A hash in place of an id, for indexed fields and names of shards: 120 bits, always 20 characters. */
export function keyOf(what: 'session' | 'snapshot' | 'owner' | 'kind' | 'key', id: string): string {
  const hash = createHash('sha256').update(`${what}:`).update(Buffer.from(id, 'utf16le'));
  return hash.digest('base64url').slice(0, KEY_LENGTH);
}

/**
 * A new owner of snapshots and shards: one incarnation of a session, or a snapshot without a session. When a session of the same id begins
 * again after it was deleted or has expired, it is a new owner, so it never reads the old snapshots. Begins with the key of the id.
 */
export function newOwner(kind: 'session' | 'snapshot', id: string): string {
  return keyOf(kind, id) + randomBytes(6).toString('base64url');
}

/** The session's key in the name of an owner, or in a name that begins with it. */
export function sessionKeyIn(owner: string): string {
  return owner.slice(0, KEY_LENGTH);
}

/** The name of a shard by its owner and its content. */
export function shardName(owner: string, content: Buffer): string {
  return `s${owner}-${digest(content).slice(0, 22)}`;
}

/** The owner in a shard's name. */
export function ownerOfShard(name: string): string {
  return name.slice(1, 1 + OWNER_LENGTH);
}

/** The document id of the record of an app or a user. The document contains the key. */
export function scopeName(tenant: string, key: string): string {
  return `r${digest(Buffer.from(JSON.stringify([tenant, key]), 'utf16le'))}`;
}

/** The prefix of the names of all records of a session, or of those of a kind: they are one range of document ids. */
export function recordPrefix(sessionId: string, kind?: string): string {
  return `r${keyOf('session', sessionId)}${kind === undefined ? '' : keyOf('kind', kind)}`;
}

/** The document id of a session record. */
export function recordName(sessionId: string, kind: string, key: string): string {
  return recordPrefix(sessionId, kind) + keyOf('key', key);
}

const SEQ_DIGITS = 12;

/** Orders the snapshots of an owner by their first saves; indexed. */
export function orderKey(owner: string, seq: number): string {
  return `${owner}:${String(seq).padStart(SEQ_DIGITS, '0')}`;
}

/** The owner in an order key. */
export function ownerOfOrder(at: string): string {
  return at.slice(0, OWNER_LENGTH);
}

function digest(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url');
}
