import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';

/** A successful system call, with all data to repeat it. */
export type Operation =
  | { readonly call: 'open' | 'mkdir' | 'rmdir' | 'unlink'; readonly path: string }
  | { readonly call: 'write'; readonly path: string; readonly bytes: Buffer }
  | { readonly call: 'truncate'; readonly path: string; readonly size: number }
  | { readonly call: 'flush' | 'close'; readonly path: string }
  | { readonly call: 'rename' | 'link'; readonly from: string; readonly to: string }
  | { readonly call: 'look'; readonly path: string };

/** Called before each system call. If it throws, the call fails with its error. */
export type Interceptor = (call: keyof FileSystem, path: string) => void;

/** The real file system. Reports every call, and lets a test make calls fail. */
export class RecordingFileSystem {
  readonly operations: Operation[] = [];
  readonly fileSystem: FileSystem;
  intercept: Interceptor = () => {};
  /** Files that are open. */
  readonly open = new Set<number>();
  readonly #paths = new Map<number, string>();

  constructor() {
    const fs = nodeFileSystem;
    const call = <T>(name: keyof FileSystem, path: string, perform: () => T, operation: Operation): T => {
      this.intercept(name, path);
      const result = perform();
      this.operations.push(operation);
      return result;
    };
    const look = <T>(name: keyof FileSystem, path: string, perform: () => T): T =>
      call(name, path, perform, { call: 'look', path });
    const of = (fd: number): string => this.#paths.get(fd) ?? '';
    this.fileSystem = {
      open: (path, flags) => {
        const fd = call('open', path, () => fs.open(path, flags), { call: 'open', path });
        this.#paths.set(fd, path);
        this.open.add(fd);
        return fd;
      },
      close: (fd) => {
        // The descriptor is closed even if the call fails.
        this.open.delete(fd);
        call('close', of(fd), () => fs.close(fd), { call: 'close', path: of(fd) });
      },
      statOpen: (fd) => look('statOpen', of(fd), () => fs.statOpen(fd)),
      read: (fd, into, position) => look('read', of(fd), () => fs.read(fd, into, position)),
      readLater: async (fd, into, position) => look('readLater', of(fd), () => fs.readLater(fd, into, position)),
      write: (fd, bytes) => {
        const operation = { call: 'write', path: of(fd), bytes: Buffer.from(bytes) } as const;
        call('write', of(fd), () => fs.write(fd, bytes), operation);
      },
      truncate: (fd, size) => {
        call('truncate', of(fd), () => fs.truncate(fd, size), { call: 'truncate', path: of(fd), size });
      },
      flush: async (fd) => {
        this.intercept('flush', of(fd));
        await fs.flush(fd);
        this.operations.push({ call: 'flush', path: of(fd) });
      },
      stat: (path) => look('stat', path, () => fs.stat(path)),
      statTarget: (path) => look('statTarget', path, () => fs.statTarget(path)),
      rename: (from, to) => call('rename', to, () => fs.rename(from, to), { call: 'rename', from, to }),
      link: (from, to) => call('link', to, () => fs.link(from, to), { call: 'link', from, to }),
      unlink: (path) => call('unlink', path, () => fs.unlink(path), { call: 'unlink', path }),
      mkdir: (path) => call('mkdir', path, () => fs.mkdir(path), { call: 'mkdir', path }),
      rmdir: (path) => call('rmdir', path, () => fs.rmdir(path), { call: 'rmdir', path }),
      readdir: (path) => look('readdir', path, () => fs.readdir(path)),
      watch: (path, onEvent, onEnd) => fs.watch(path, onEvent, onEnd),
    };
  }
}
