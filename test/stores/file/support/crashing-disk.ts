import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Operation } from './recording.ts';
import type { Random } from '../../../support/random.ts';

interface File {
  readonly kind: 'file';
  content: Buffer;
  /** The content that was flushed. */
  safe: Buffer;
}

interface Folder {
  readonly kind: 'folder';
  entries: Map<string, File | Folder>;
  /** The entries that were flushed. */
  safe: Map<string, File | Folder>;
  /** Folders between which something was moved since the last flush: file systems keep or lose both sides of a move. */
  bound: Set<Folder>;
}

/**
 * The unflushed changes that survive a power failure. `dropped`: none. `metadata-only`: all entries of folders, but no content.
 * `mixed`: of each file and folder all or nothing, at random.
 */
export type Survival = 'dropped' | 'metadata-only' | 'mixed';

/**
 * A disk with a cache: knows what was written and what of that has been flushed. Harsher than real ones, which flush more than they are asked to; as gentle
 * only in that a move between two folders of the store is whole. (One from the folder of temporary files counts as two changes.)
 */
export class CrashingDisk {
  readonly #base: string;
  readonly #root: Folder;
  readonly #open = new Map<string, File>();

  /** @param base A folder on the real disk; what is in it now counts as flushed. */
  constructor(base: string) {
    this.#base = base;
    this.#root = loadFolder(base, new Map());
  }

  apply(operation: Operation): void {
    switch (operation.call) {
      case 'open':
        return this.#openFile(operation.path);
      case 'write':
        return this.#change(operation.path, (content) => Buffer.concat([content, operation.bytes]));
      case 'truncate':
        return this.#change(operation.path, (content) => content.subarray(0, operation.size));
      case 'flush':
        return this.#flush(operation.path);
      case 'mkdir':
        this.#entries(operation.path).set(nameOf(operation.path), newFolder(new Map()));
        return;
      case 'unlink':
      case 'rmdir':
        this.#entries(operation.path).delete(nameOf(operation.path));
        return;
      case 'rename':
        return this.#move(operation.from, operation.to);
      case 'link':
        return this.#link(operation.from, operation.to);
      case 'close':
      case 'look':
    }
  }

  /** Writes the data after the failure to an empty folder on the real disk. */
  crash(folder: string, survival: Survival, random: Random): void {
    saveFolder(this.#root, folder, { survival, random, written: new Map(), survivors: new Map() });
  }

  /** An open file stays the same when it is moved or removed. */
  #openFile(path: string): void {
    if (path === this.#base) return;
    const parent = this.#entries(path);
    const found = parent.get(nameOf(path));
    if (found?.kind === 'folder') return;
    const file: File = found ?? { kind: 'file', content: Buffer.alloc(0), safe: Buffer.alloc(0) };
    parent.set(nameOf(path), file);
    this.#open.set(path, file);
  }

  #change(path: string, change: (content: Buffer) => Buffer): void {
    const file = this.#open.get(path)!;
    file.content = change(file.content);
  }

  #flush(path: string): void {
    const found = path === this.#base ? this.#root : this.#entries(path).get(nameOf(path));
    if (found?.kind !== 'folder') {
      const file = this.#open.get(path)!;
      file.safe = file.content;
      return;
    }
    for (const folder of boundTo(found)) {
      folder.safe = new Map(folder.entries);
      folder.bound.clear();
    }
  }

  #move(from: string, to: string): void {
    this.#link(from, to);
    this.#entries(from).delete(nameOf(from));
    const [source, target] = [this.#parent(from), this.#parent(to)];
    if (dirname(from).endsWith('.tmp')) return;
    source.bound.add(target);
    target.bound.add(source);
  }

  #link(from: string, to: string): void {
    this.#entries(to).set(nameOf(to), this.#entries(from).get(nameOf(from))!);
  }

  #entries(path: string): Map<string, File | Folder> {
    return this.#parent(path).entries;
  }

  #parent(path: string): Folder {
    let folder = this.#root;
    for (const name of relative(this.#base, dirname(path)).split('/').filter(Boolean)) {
      folder = folder.entries.get(name) as Folder;
    }
    return folder;
  }
}

function newFolder(entries: Map<string, File | Folder>): Folder {
  return { kind: 'folder', entries, safe: new Map(entries), bound: new Set() };
}

function boundTo(folder: Folder): Set<Folder> {
  const found = new Set([folder]);
  for (const each of found) for (const other of each.bound) found.add(other);
  return found;
}

function nameOf(path: string): string {
  return path.slice(dirname(path).length + 1);
}

function loadFolder(path: string, files: Map<number, File>): Folder {
  const entries = new Map<string, File | Folder>();
  for (const name of readdirSync(path)) {
    const entry = join(path, name);
    const { ino, mode } = statSync(entry);
    if ((mode & 0o170000) === 0o040000) {
      entries.set(name, loadFolder(entry, files));
      continue;
    }
    const content = readFileSync(entry);
    const file = files.get(ino) ?? { kind: 'file', content, safe: content };
    files.set(ino, file);
    entries.set(name, file);
  }
  return newFolder(entries);
}

interface Saving {
  readonly survival: Survival;
  readonly random: Random;
  readonly written: Map<File, string>;
  readonly survivors: Map<Folder, boolean>;
}

function saveFolder(folder: Folder, path: string, saving: Saving): void {
  mkdirSync(path, { recursive: true });
  for (const [name, entry] of survives(folder, saving) ? folder.entries : folder.safe) {
    const to = join(path, name);
    if (entry.kind === 'folder') saveFolder(entry, to, saving);
    else if (saving.written.has(entry)) linkSync(saving.written.get(entry)!, to);
    else {
      const isWhole = saving.survival === 'mixed' && saving.random.below(2) === 0;
      writeFileSync(to, ofTheDead(isWhole ? entry.content : entry.safe));
      saving.written.set(entry, to);
    }
  }
}

/** Whether the unflushed entries of a folder survive the failure. */
function survives(folder: Folder, { survival, random, survivors }: Saving): boolean {
  if (survival !== 'mixed') return survival === 'metadata-only';
  if (!survivors.has(folder)) {
    const fate = random.below(2) === 0;
    for (const each of boundTo(folder)) survivors.set(each, fate);
  }
  return survivors.get(folder)!;
}

/** Locks were held by this process, which lives; for the test it must have died. No process has such a high id. */
function ofTheDead(content: Buffer): Buffer {
  if (!/^1\.[0-9a-f]{12}\./.test(content.toString('latin1', 0, 16))) return content;
  return Buffer.from(content.toString('latin1').replace(`.${process.pid}.`, '.4194305.'), 'latin1');
}
