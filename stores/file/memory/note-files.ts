import { join } from 'node:path';
import { dataLoss } from '../../../src/errors.ts';
import type { Json } from '../../../src/json/value.ts';
import type { Sealer } from '../../../src/store/encryption/encryption.ts';
import { isDerivedKind, type NoteOperation } from '../../../src/store/memory/checks.ts';
import type { MemoryNote } from '../../../src/store/memory/contract.ts';
import { readFrom } from '../disk/read-file.ts';
import type { StoreFolder } from '../disk/store-folder.ts';
import { FORMAT, formatSealable, openSealable, parseSealable } from '../format/sealable.ts';
import { shortHashOf, type LogTail } from './log-format.ts';

/** A note's file, by its name: `<n, or d of a derived one>-<kind>-<key>-<commit>`, with `-x` at the end if the commit removed the note. */
interface NoteFile {
  readonly name: string;
  /** The name without the commit. */
  readonly note: string;
  readonly commit: number;
  readonly isDerived: boolean;
  readonly isRemoval: boolean;
}

const NAME = /^((n|d)-[0-9a-f]{32}-[0-9a-f]{32})-(\d+)(-x)?\.json$/;

/**
 * The notes of a scope: a file for each note and commit that wrote it. A file is written before its commit, and is valid once the log has
 * that commit; then the files that it replaces are removed. Changes are made under the scope's lock.
 */
export class NoteFiles {
  readonly #folder: StoreFolder;
  readonly #path: string;
  readonly #sealer: Sealer;

  constructor(folder: StoreFolder, path: string, sealer: Sealer) {
    this.#folder = folder;
    this.#path = path;
    this.#sealer = sealer;
  }

  /**
   * The notes as of a commit; `undefined` if some of them were removed since.
   *
   * @param keys Default: all of the kind.
   * @throws `DATA_LOSS`
   */
  async read(kind: string, keys: readonly string[] | undefined, tail: LogTail): Promise<MemoryNote[] | undefined> {
    const wanted = keys && new Set(keys.map((key) => nameOf({ kind, key })));
    const beginning = beginningOf(kind);
    const found: MemoryNote[] = [];
    for (const file of this.#current(tail)) {
      if (file.isRemoval || !file.note.startsWith(beginning) || wanted?.has(file.note) === false) continue;
      const content = await readFrom(this.#folder.fs, join(this.#path, file.name));
      if (content === 'missing') return undefined;
      if (content === 'no-file') throw damaged();
      found.push(await this.#parse(content.bytes, file));
    }
    return found;
  }

  /** The number of notes as of a commit. */
  count(tail: LogTail): number {
    return this.#current(tail).filter(({ isRemoval }) => !isRemoval).length;
  }

  /** Writes the notes of a commit, before the commit. */
  async write(notes: readonly NoteOperation[], commit: number): Promise<void> {
    if (notes.length === 0) return;
    for (const note of notes) {
      const name = `${nameOf(note)}-${commit}${note.value === undefined ? '-x' : ''}.json`;
      await this.#folder.replace(join(this.#path, name), await this.#format(note, name));
    }
    await this.#folder.flushFolder(this.#path);
  }

  /** Removes the files of a commit that was not made. Call it before the next commit. */
  discard({ commit }: LogTail): void {
    for (const file of this.#files()) if (file.commit > commit) this.#folder.remove(join(this.#path, file.name));
  }

  /** Removes files that are no longer valid. */
  async tidy(tail: LogTail): Promise<void> {
    const current = this.#current(tail);
    const names = new Set(current.map(({ name }) => name));
    const old = this.#files().filter(({ name }) => !names.has(name));
    for (const { name } of old) this.#folder.remove(join(this.#path, name));
    if (old.length > 0) await this.#folder.flushFolder(this.#path);
    // Removal marks go last: without them, the removed notes would come back.
    for (const { name, isRemoval } of current) if (isRemoval) this.#folder.remove(join(this.#path, name));
  }

  /** The last file of each note. */
  #current({ commit, derived, cleared }: LogTail): NoteFile[] {
    const current = new Map<string, NoteFile>();
    for (const file of this.#files()) {
      const counts = file.commit <= commit && file.commit > cleared && !(file.isDerived && file.commit < derived);
      if (counts && file.commit > (current.get(file.note)?.commit ?? 0)) current.set(file.note, file);
    }
    return [...current.values()];
  }

  #files(): NoteFile[] {
    return this.#folder.namesIn(this.#path).flatMap((name) => {
      const [, note, group, commit, removal] = NAME.exec(name) ?? [];
      if (note === undefined) return [];
      return { name, note, commit: Number(commit), isDerived: group === 'd', isRemoval: removal !== undefined };
    });
  }

  async #format({ kind, key, value }: NoteOperation, name: string): Promise<Buffer> {
    if (value === undefined) return Buffer.from(`{"format":${FORMAT}}\n`);
    const note = { name: 'note', value: [kind, key, value], place: name };
    return Buffer.from(await formatSealable({}, note, await this.#sealer.cipher()));
  }

  async #parse(bytes: Buffer, { name }: NoteFile): Promise<MemoryNote> {
    const read = parseSealable(bytes, 'note', () => 'A note of a memory store');
    if (!read) throw damaged();
    const parts = await openSealable(read, { sealer: this.#sealer, place: name, damaged });
    if (!Array.isArray(parts)) throw damaged();
    const [kind, key, value] = parts as [string, string, Json];
    return { kind, key, value };
  }
}

/** The beginning of the names of a kind. */
function beginningOf(kind: string): string {
  return `${isDerivedKind(kind) ? 'd' : 'n'}-${shortHashOf(kind)}-`;
}

function nameOf({ kind, key }: { readonly kind: string; readonly key: string }): string {
  return `${beginningOf(kind)}${shortHashOf(key)}`;
}

function damaged(): Error {
  return dataLoss(
    "A note of a memory store can't be read: its file is damaged. Restore it from a backup, or write the note again.",
  );
}
