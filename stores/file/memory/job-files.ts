import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { dataLoss } from '../../../src/errors.ts';
import type { Json } from '../../../src/json/value.ts';
import type { Sealer } from '../../../src/store/encryption/encryption.ts';
import type { MemoryJob } from '../../../src/store/memory/contract.ts';
import { jobReadError, memoryJobDueAt } from '../../../src/store/memory/jobs.ts';
import { describeMemoryScope, memoryScopeKey } from '../../../src/store/memory/scope.ts';
import { readFrom } from '../disk/read-file.ts';
import type { StoreFolder } from '../disk/store-folder.ts';
import { formatSealable, openSealable, parseSealable, type Sealable } from '../format/sealable.ts';
import { isObject } from '../format/text.ts';
import { shortHashOf } from './log-format.ts';

/** A job's file, by its name. */
export interface JobFile {
  readonly name: string;
  /** A unique name of each job that was added. */
  readonly ref: string;
  /** Its place in the order in which jobs were added. */
  readonly number: number;
  readonly idHash: string;
  /** How often it was changed. */
  readonly change: number;
  /** When a worker may take it, in milliseconds since 1970; infinite for a dead one. */
  readonly dueAt: number;
  /** {@link shortHashOf} the key of its scope. */
  readonly scope: string;
}

const NAME = /^((\d+)-([0-9a-f]{32})-[0-9a-f]{12})-(\d+)-(\d+|dead)-([0-9a-f]{32})\.json$/;

/**
 * The jobs of a tenant, a file each. The file's name has all that a claim needs to choose a job, so only one file is read. A change writes
 * a new file and removes the one before. All methods are called under the lock of the jobs.
 */
export class JobFiles {
  readonly path: string;
  readonly #folder: StoreFolder;
  readonly #sealerOf: (scopeKey: string) => Sealer;

  constructor(folder: StoreFolder, path: string, sealerOf: (scopeKey: string) => Sealer) {
    this.#folder = folder;
    this.path = path;
    this.#sealerOf = sealerOf;
  }

  /** The oldest first. */
  list(): JobFile[] {
    const files = new Map<string, JobFile>();
    for (const name of this.#folder.namesIn(this.path)) {
      const file = parseName(name);
      if (!file) continue;
      const known = files.get(file.ref);
      // An interrupted change has left the file before.
      if (known) this.#folder.remove(join(this.path, known.change < file.change ? known.name : name));
      if (!known || known.change < file.change) files.set(file.ref, file);
    }
    return [...files.values()].toSorted((x, y) => x.number - y.number);
  }

  /** The key of a job's scope, which is in clear. */
  async scopeOf(file: JobFile): Promise<string> {
    try {
      const { head, stored } = await this.#content(file);
      return 'sealed' in stored ? JSON.stringify(head['scope']) : memoryScopeKey(jobOf(stored.value).scope);
    } catch (error) {
      throw jobReadError(error, placeOf(file));
    }
  }

  /** @param scopeKey The job's scope, for messages. Default: the one in its file. */
  async read(file: JobFile, scopeKey?: string): Promise<MemoryJob> {
    let key = scopeKey;
    try {
      const content = await this.#content(file);
      const { scope } = content.head;
      if (scope !== undefined) key ??= JSON.stringify(scope);
      const sealer = this.#sealerOf(JSON.stringify(scope));
      return Object.freeze(jobOf(await openSealable(content, { sealer, place: file.ref, damaged })));
    } catch (error) {
      throw jobReadError(error, key === undefined ? placeOf(file) : `of ${describeMemoryScope(key)}`);
    }
  }

  async #content({ name }: JobFile): Promise<Sealable> {
    const content = await readFrom(this.#folder.fs, join(this.path, name));
    const read = typeof content === 'object' && parseSealable(content.bytes, 'job', () => 'A memory job');
    if (!read) throw damaged();
    return read;
  }

  async add(job: MemoryJob, number: number): Promise<void> {
    for (const path of this.#folder.makeFolder(this.path)) await this.#folder.flushFolder(path);
    const ref = `${number}-${shortHashOf(job.id)}-${randomBytes(6).toString('hex')}`;
    await this.#write(ref, 0, job);
  }

  async replace(file: JobFile, job: MemoryJob): Promise<void> {
    await this.#write(file.ref, file.change + 1, job);
    await this.remove([file]);
  }

  async remove(files: readonly JobFile[]): Promise<void> {
    if (files.length === 0) return;
    for (const { name } of files) this.#folder.remove(join(this.path, name));
    await this.#folder.flushFolder(this.path);
  }

  async #write(ref: string, change: number, job: MemoryJob): Promise<void> {
    const key = memoryScopeKey(job.scope);
    const due = memoryJobDueAt(job);
    const name = `${ref}-${change}-${due === Infinity ? 'dead' : Math.max(0, due)}-${shortHashOf(key)}.json`;
    const cipher = await this.#sealerOf(key).cipher();
    const head = cipher && { scope: JSON.parse(key) as string[] };
    const content = await formatSealable({ ...head }, { name: 'job', value: job, place: ref }, cipher);
    await this.#folder.replace(join(this.path, name), Buffer.from(content));
    await this.#folder.flushFolder(this.path);
  }
}

export function findJob(files: readonly JobFile[], id: string): JobFile | undefined {
  const hash = shortHashOf(id);
  return files.find(({ idHash }) => idHash === hash);
}

function parseName(name: string): JobFile | undefined {
  const match = NAME.exec(name);
  if (!match) return undefined;
  const [, ref, number, idHash, change, due, scope] = match as unknown as string[];
  return {
    name,
    ref: ref!,
    number: Number(number),
    idHash: idHash!,
    change: Number(change),
    dueAt: due === 'dead' ? Infinity : Number(due),
    scope: scope!,
  };
}

/** For messages about a damaged file, whose scope is unknown. */
function placeOf({ name }: JobFile): string {
  return `in the file ${name}`;
}

function jobOf(json: Json): MemoryJob {
  if (!isObject(json)) throw damaged();
  return json as unknown as MemoryJob;
}

function damaged(): Error {
  return dataLoss('The file of a memory job is damaged. Restore it from a backup, or remove it.');
}
