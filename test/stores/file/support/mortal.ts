import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';

const CHANGES = /^(?:write|rename|link|unlink|rmdir|mkdir|truncate|flush)$/;

/** A file system that fails from some changing call on, as if its process had been killed. */
export class MortalFileSystem {
  readonly fileSystem: FileSystem;
  dead = false;
  #left = Infinity;

  constructor() {
    this.fileSystem = { ...nodeFileSystem };
    for (const [name, call] of Object.entries(nodeFileSystem)) {
      const mortal = (...args: unknown[]): unknown => {
        this.step(name);
        return (call as (...args: unknown[]) => unknown)(...args);
      };
      Object.assign(this.fileSystem, { [name]: mortal });
    }
  }

  /** Counts a call, also of other changes of the process. */
  step(name: string): void {
    if (CHANGES.test(name) && this.#left-- <= 0) this.dead = true;
    if (this.dead) throw new Error('killed');
  }

  dieAfter(changes: number): void {
    this.#left = changes;
  }
}
