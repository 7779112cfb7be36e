import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import type { CopyResult } from 'genkitx-agents';
import { Problem, WrongUse } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { outOption, writeLines, type OutFlags } from '../../output/lines.ts';
import { count } from '../../output/text.ts';
import { openStore } from '../../stores/open-store.ts';
import { importPackage } from '../../stores/packages.ts';
import { closing, printJson, storeCommand, withStore, type StoreFlags } from '../with-store.ts';

interface ExportFlags extends StoreFlags, OutFlags {
  readonly session?: readonly string[];
}

interface CopyFlags {
  readonly from: string;
  readonly to: string;
  readonly tenant?: string;
  readonly toTenant?: string;
  readonly json?: boolean;
}

/** `sessions export`, `import` and `copy` */
export function addMove(parent: Command, io: Io): void {
  storeCommand(parent, 'export', 'sessions with their trees, ids and records as JSON Lines')
    .addOption(outOption())
    .option('--session <id...>', 'only these sessions. Default: all, and the records of users and apps')
    .action((flags: ExportFlags) =>
      withStore(io, flags, ['list'], async ({ store, caller }) => {
        const { exportSessions } = await importPackage(() => import('genkitx-agents'));
        const lines = exportSessions(store, { ...caller, ...(flags.session && { sessionIds: flags.session }) });
        let sessions = 0;
        let unreadable = 0;
        const shown = async function* (): AsyncGenerator<string> {
          for await (const line of lines) {
            if (line.startsWith('{"kind":"unreadable"')) unreadable++;
            if (line.startsWith('{"kind":"session"')) io.progress(`${count(++sessions, 'session')} exported`);
            yield line;
          }
        };
        await writeLines(io, flags, shown());
        io.say(`Exported: ${count(sessions, 'session')}`);
        if (unreadable > 0)
          throw new Problem(
            `Not exported, because it can't be read: ${count(unreadable, 'part')} of the data. The lines of kind "unreadable" say which.`,
          );
      }),
    );
  storeCommand(parent, 'import [file]', "reads what export wrote, from a file or the standard input ('-')").action(
    async (file: string | undefined, flags: StoreFlags) => {
      const open = await openStore(flags, io, { needs: ['list'], isNew: true });
      await closing(io, [open], async () => {
        const { importSessions } = await importPackage(() => import('genkitx-agents'));
        const input = file === undefined || file === '-' ? io.input : await readable(resolve(io.folder, file));
        const options = { ...open.caller, onProgress: (progress: CopyResult) => showProgress(io, progress) };
        await printMoved(io, flags, await importSessions(open.store, input, options));
      });
    },
  );
  parent
    .command('copy')
    .description('copies all sessions and the records of users and apps to another store; run it again to continue')
    .addOption(new Option('--from <url>', 'the store to read').makeOptionMandatory())
    .addOption(new Option('--to <url>', 'the store to write; its data is not overwritten').makeOptionMandatory())
    .option('-t, --tenant <prefix>', 'the tenant')
    .option('--to-tenant <prefix>', 'the tenant in the store to write. Default: the same')
    .option('--json', 'for programs: JSON')
    .action(async (flags: CopyFlags) => {
      const { from, to, tenant, toTenant = tenant } = flags;
      const source = await openStore({ store: from, ...(tenant !== undefined && { tenant }) }, io, { needs: ['list'] });
      const stores = [source];
      await closing(io, stores, async () => {
        const place = { store: to, ...(toTenant !== undefined && { tenant: toTenant }) };
        const target = await openStore(place, io, { needs: ['list', 'delete'], isNew: true });
        stores.push(target);
        const { copySessions } = await importPackage(() => import('genkitx-agents'));
        const onProgress = (progress: CopyResult): void => showProgress(io, progress);
        await printMoved(io, flags, await copySessions(source.store, target.store, { onProgress }));
      });
    });
}

function showProgress(io: Io, { sessions, snapshots }: CopyResult): void {
  io.progress(`${count(sessions, 'session')} complete, ${count(snapshots, 'snapshot')} written`);
}

async function printMoved(io: Io, { json }: { readonly json?: boolean }, result: CopyResult): Promise<void> {
  const { sessions, snapshots, records, scopes, diverged, partial } = result;
  if (json) await printJson(io, result);
  else {
    await io.print(
      `Complete: ${count(sessions, 'session')}\n` +
        `Written:  ${count(snapshots, 'snapshot')}, ${count(records, 'session record')}, ${count(scopes, 'record')} of users and apps\n`,
    );
  }
  const problems: string[] = [];
  if (diverged.length > 0) {
    problems.push(
      `${count(diverged.length, 'session')} continued in both stores, and nothing more of them was written: ${diverged.join(', ')}. ` +
        'Decide which to keep, delete the other, and run this again.',
    );
  }
  if (partial.length > 0) {
    problems.push(
      `${count(partial.length, 'session')} continued in the second store, and other branches stay in the first: ${partial.join(', ')}. ` +
        'Keep the first store if you need them.',
    );
  }
  if (problems.length > 0) throw new Problem(problems.join('\n'));
}

async function readable(path: string): Promise<AsyncIterable<Uint8Array>> {
  const stream = createReadStream(path);
  try {
    await new Promise((done, fail) => stream.once('open', done).once('error', fail));
  } catch (error) {
    throw new WrongUse(`${path} can't be read: ${(error as Error).message}`);
  }
  return stream as AsyncIterable<Uint8Array>;
}
