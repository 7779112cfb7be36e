import { Option, type Command } from 'commander';
import type { ActionContext } from 'genkit';
import type { StoreCapabilities } from 'genkitx-agents';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { table, type Column } from '../output/table.ts';
import { openStore, type OpenStore } from '../stores/open-store.ts';

/** Options of every command that works on a store. */
export interface StoreFlags {
  readonly store: string;
  readonly tenant?: string;
  readonly context?: ActionContext;
  readonly json?: boolean;
}

/** A command that works on a store. */
export function storeCommand(parent: Command, usage: string, description: string): Command {
  return parent
    .command(usage)
    .description(description)
    .addOption(
      new Option('-s, --store <url>', 'file:DIRECTORY, firestore:PROJECT/COLLECTION or ./module.ts#export')
        .env('GENKITX_AGENTS_STORE')
        .makeOptionMandatory(),
    )
    .option('-t, --tenant <prefix>', 'the tenant. Default: that of a store without snapshotPathPrefix')
    .option('--context <json>', 'the context of all calls, for a store of a module', parseContext)
    .option('--json', 'prints JSON for programs, one line for each item of a list');
}

/** The value of `--context`. */
export function parseContext(text: string): ActionContext {
  let context: unknown;
  try {
    context = JSON.parse(text);
  } catch {
    // Refused below.
  }
  if (typeof context === 'object' && context !== null && !Array.isArray(context)) return context;
  throw new WrongUse(`--context takes a JSON object, for example '{"auth":{"uid":"ada"}}'.`);
}

/** Opens a command's store, runs the work, and closes the store, also when the command is interrupted. */
export async function withStore<T>(
  io: Io,
  flags: StoreFlags,
  needs: readonly (keyof StoreCapabilities)[],
  work: (open: OpenStore) => Promise<T>,
): Promise<T> {
  const open = await openStore(flags, io, { needs });
  return closing(io, [open], () => work(open));
}

/** Runs work, and closes stores when it ends or is interrupted. */
export async function closing<T>(
  io: Io,
  stores: readonly Pick<OpenStore, 'close'>[],
  work: () => Promise<T>,
): Promise<T> {
  const { signal } = io;
  let stop = (): void => {};
  const interrupted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new Error('interrupted'));
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work(), interrupted]);
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.all(stores.map((store) => store.close()));
  }
}

/** All items of a list, page by page. */
export async function* itemsOf<T>(
  list: (page: { limit: number; cursor?: string }) => Promise<{ items: T[]; nextCursor?: string }>,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list({ limit: 1000, ...(cursor !== undefined && { cursor }) });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** Prints items in a table, or with `--json` as a line each. With a limit, says when there are more. */
export async function printItems<T>(
  io: Io,
  { json, limit = Infinity }: { readonly json?: boolean; readonly limit?: number },
  items: Iterable<T> | AsyncIterable<T>,
  none: string,
  columns: readonly Column<T>[],
): Promise<void> {
  const rows: T[] = [];
  let hasMore = false;
  for await (const item of items) {
    hasMore = rows.length === limit;
    if (hasMore) break;
    rows.push(item);
    if (json) await printJson(io, item);
  }
  if (!json) await io.print(rows.length === 0 ? `${none}\n` : table(rows, columns));
  if (hasMore) io.say(`There are more. --limit sets how many are shown (now ${limit}).`);
}

/** Prints a value as a line of JSON. */
export function printJson(io: Io, value: unknown): Promise<void> {
  return io.print(`${JSON.stringify(value)}\n`);
}
