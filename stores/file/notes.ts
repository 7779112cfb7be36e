import { closeQuietly, codeOf, CREATE, isRefusal, READ, type FileSystem } from './file-system.ts';

const LONGEST_NOTE = 256;

/** How often a master is made anew: another process that tidies up may take one that is just being written for a leftover. */
const MOST_MASTERS = 5;

/**
 * Notes are short texts with a path that come into being whole and at most once: of several who make the same note one succeeds.
 *
 * A note is a hard link to a master file that has the text, so it costs a folder entry, and neither an inode nor a block. Where there are no
 * hard links it is a symbolic link whose target is the text; nothing ever follows it.
 */
export class Notes {
  readonly #fs: FileSystem;
  #hasLinks = true;

  constructor(fs: FileSystem) {
    this.#fs = fs;
  }

  /**
   * Makes the note.
   *
   * @param master A file of this text, for this process only; made when it is not there.
   * @returns Whether it was made; `false`: there is one already.
   */
  create(path: string, text: string, master: string): boolean {
    try {
      return this.#create(path, text, master);
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    }
  }

  /** The text of a note; `undefined`: there is none. */
  read(path: string): string | undefined {
    try {
      return this.#readFile(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      if (this.#fs.stat(path)?.isSymbolicLink()) return this.#fs.readlink(path);
      throw error;
    }
  }

  #create(path: string, text: string, master: string): boolean {
    if (this.#hasLinks) {
      try {
        this.#link(path, text, master);
        return true;
      } catch (error) {
        if (!isRefusal(error)) throw error;
        this.#hasLinks = false;
      }
    }
    this.#fs.symlink(text, path);
    return true;
  }

  #link(path: string, text: string, master: string): void {
    for (let attempt = 1; ; attempt++) {
      try {
        return this.#fs.link(master, path);
      } catch (error) {
        if (codeOf(error) !== 'ENOENT' || attempt > MOST_MASTERS) throw error;
      }
      this.#writeMaster(master, text);
    }
  }

  #writeMaster(path: string, text: string): void {
    const fd = this.#fs.open(path, CREATE);
    try {
      this.#fs.write(fd, Buffer.from(text, 'latin1'));
    } finally {
      closeQuietly(this.#fs, fd);
    }
  }

  #readFile(path: string): string {
    const fd = this.#fs.open(path, READ);
    try {
      const bytes = Buffer.alloc(LONGEST_NOTE);
      return bytes.toString('latin1', 0, this.#fs.read(fd, bytes, 0));
    } finally {
      closeQuietly(this.#fs, fd);
    }
  }
}
