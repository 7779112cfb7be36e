/** Copies a file store to another. The test kills it meanwhile. */
import { FileSessionStore } from '../../stores/file/file-session-store.ts';
import { copySessions } from '../../src/store/migrate/copy-sessions.ts';
import { mortalFileSystem } from '../stores/file/processes/support/mortal-file-system.ts';

const [from, to, call] = process.argv.slice(2) as [string, string, string];
const fileSystem = mortalFileSystem({ call: Number(call), moment: Number(call) % 2 === 0 ? 'before' : 'after' });
const options = { durability: 'fast' } as const;
await copySessions(new FileSessionStore(from, options), new FileSessionStore(to, options, fileSystem));
