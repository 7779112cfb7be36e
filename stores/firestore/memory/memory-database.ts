import { setTimeout as pause } from 'node:timers/promises';
import type { CollectionReference, DocumentReference } from '@google-cloud/firestore';
import { Sealer, type Encryption } from '../../../src/store/encryption/encryption.ts';
import { memoryScopeOfKey } from '../../../src/store/memory/scope.ts';
import type { KeyQueue } from '../../../src/store/parts/key-queue.ts';
import type { Database } from '../database.ts';
import { isConflict, tooContended } from '../failures.ts';
import { documentId } from '../format/names.ts';
import { hashName, isKept, readHead, readVersion } from './memory-documents.ts';

export interface SharedMemories {
  readonly database: Database;
  /** Serializes the writes of this process to one scope, which would otherwise conflict. */
  readonly queue: KeyQueue;
  readonly encryption: Encryption | undefined;
}

const MOST_ATTEMPTS = 30;

/** The part of the database that belongs to one tenant. */
export class MemoryDatabase {
  readonly database: Database;
  readonly scopes: CollectionReference;
  readonly jobs: CollectionReference;
  readonly queues: CollectionReference;
  readonly #tenant: string;
  readonly #shared: SharedMemories;

  constructor(tenant: string, shared: SharedMemories) {
    const id = documentId(tenant);
    this.database = shared.database;
    this.scopes = shared.database.collection('', id, 'scopes');
    this.jobs = shared.database.collection('-jobs', id, 'jobs');
    this.queues = shared.database.collection('-jobs', id, 'queues');
    this.#tenant = id;
    this.#shared = shared;
  }

  /** The document of a scope, by its key. */
  head(key: string): DocumentReference {
    return this.scopes.doc(hashName(key));
  }

  memories(key: string): CollectionReference {
    return this.head(key).collection('memories');
  }

  /** The earlier versions of the memories of a scope. */
  revisions(key: string): CollectionReference {
    return this.head(key).collection('revisions');
  }

  notes(key: string): CollectionReference {
    return this.head(key).collection('notes');
  }

  sealer(key: string): Sealer {
    const owner = { tenant: this.#tenant, kind: 'memory', id: key } as const;
    return new Sealer(this.#shared.encryption, owner, () => this.#reopen(key));
  }

  /** Decrypts the memory that was written last. */
  async #reopen(key: string): Promise<void> {
    const last = this.memories(key).orderBy('sequence', 'desc').limit(1);
    const [head, memory] = await this.database.readTogether(this.head(key), last);
    if (!memory || !isKept(memory, readHead(head!))) return;
    await readVersion(memory, { scope: memoryScopeOfKey(key), sealer: this.sealer(key) });
  }

  /**
   * Runs `attempt` again while it fails because its documents were written meanwhile.
   *
   * @param what For the message: `Committing memories`.
   */
  untilMade<T>(what: string, key: string, attempt: () => Promise<T>): Promise<T> {
    return this.#shared.queue.run(JSON.stringify([this.#tenant, key]), async () => {
      for (let attempts = 1; ; attempts++) {
        try {
          return await attempt();
        } catch (error) {
          if (!isConflict(error)) throw error;
          if (attempts === MOST_ATTEMPTS) throw tooContended(what);
        }
        await pause(Math.random() * 10 * Math.min(attempts, 10));
      }
    });
  }
}
