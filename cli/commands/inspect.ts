import { Option, type Command } from 'commander';
import type { ActionContext } from 'genkit';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { parseContext, withStore } from './with-store.ts';

/** Options of the command. */
export interface InspectFlags {
  readonly store?: string;
  readonly tenant?: string;
  readonly context?: ActionContext;
  readonly agents?: string;
  readonly memory?: string;
  readonly port: number;
  readonly readOnly?: boolean;
  readonly open: boolean;
}

/** `inspect` */
export function addInspect(program: Command, io: Io): void {
  program
    .command('inspect [store]')
    .description('serves a page with the sessions of a store, on this machine only')
    .addOption(new Option('-s, --store <url>', 'the store, in place of the argument').env('GENKITX_AGENTS_STORE'))
    .option('-t, --tenant <prefix>', 'the tenant. Default: that of a store without snapshotPathPrefix')
    .option('--context <json>', 'the context of all calls, for a store of a module', parseContext)
    .option('--agents <export>', './app.ts#ai: a Genkit instance or an agent, to continue from a snapshot')
    .option('--memory <url>', 'file:DIRECTORY, firestore:PROJECT/COLLECTION or ./app.ts#memory: the memories to show')
    .option('-p, --port <port>', '0 chooses a free port', parsePort, 4747)
    .option('--read-only', 'refuse all writes')
    .option('--no-open', 'do not open a browser')
    .action(async (named: string | undefined, flags: InspectFlags, command: Command) => {
      if (named !== undefined && command.getOptionValueSource('store') === 'cli')
        throw new WrongUse('Name one store, as the argument or by --store.');
      const store = named ?? flags.store;
      if (store === undefined)
        throw new WrongUse('Name the store to inspect, for example: inspect file:.data/sessions');
      const { serveInspector } = await import('../inspect/serve-inspector.ts');
      await withStore(io, { ...flags, store }, [], (open) => serveInspector(io, open, { ...flags, store }));
    });
}

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new WrongUse(`'${text}' is not a port. Write a number from 0 to 65535.`);
}
