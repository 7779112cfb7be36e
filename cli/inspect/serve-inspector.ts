import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AgentSource, InspectorOptions, ServedAgent } from 'genkitx-agents/inspector';
import type { InspectFlags } from '../commands/inspect.ts';
import { Problem, WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { openMemories, type OpenMemories } from '../stores/open-memories.ts';
import { loadNamed, parseStoreUrl } from '../stores/open-place.ts';
import type { OpenStore } from '../stores/open-store.ts';
import { importPackage } from '../stores/packages.ts';
import { openBrowser } from './open-browser.ts';

/** Serves the inspector on the loopback interface until the command is ended. */
export async function serveInspector(
  io: Io,
  { store, caller }: OpenStore,
  flags: InspectFlags & { readonly store: string },
): Promise<void> {
  const { inspector, nodeListener } = await importPackage(() => import('genkitx-agents/inspector'));
  const agents = await loadAgents(flags.agents, io.folder);
  const memories = await openNamedMemories(flags, io);
  const inspect = inspector({
    store,
    storeName: flags.store,
    ...caller,
    ...(agents && { agents }),
    ...(memories && { memory: memories.manager }),
    readOnly: flags.readOnly ?? false,
    // Not the environment's value: the command shows the page even with NODE_ENV=production.
    nodeEnv: 'development',
    onAddress: (address) => io.say(`Open once: ${address}`),
  });
  const server = createServer(nodeListener(inspect));
  let forget = () => {};
  try {
    const address = inspect.address(await listen(server, flags.port));
    await io.print(`${address}\n`);
    io.say('The address opens the inspector once; the page can then be reloaded. Ctrl-C ends it.');
    if (flags.open && process.stdout.isTTY) forget = openBrowser(address);
    await ended(io.signal);
  } finally {
    forget();
    inspect.close();
    server.closeAllConnections();
    server.close();
    await memories?.close();
  }
}

/** Memories of a module get the tenant from the context of all calls, not from `--tenant`. */
async function openNamedMemories({ memory, tenant }: InspectFlags, io: Io): Promise<OpenMemories | undefined> {
  if (memory === undefined) return undefined;
  const isModule = parseStoreUrl(memory, io.folder).kind === 'module';
  return openMemories({ store: memory, ...(!isModule && tenant !== undefined && { tenant }) }, io);
}

/** A Genkit instance or an agent that the user's module exports. */
async function loadAgents(url: string | undefined, folder: string): Promise<InspectorOptions['agents']> {
  if (url === undefined) return undefined;
  const found = (await loadNamed('--agents', url, folder)) as AgentSource & ServedAgent;
  if (found.registry) return found;
  if (found.getSnapshotDataAction) return [found];
  throw new WrongUse(`'${url}' is neither a Genkit instance nor an agent.`);
}

/** @throws Problem when the port is taken. */
async function listen(server: Server, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === 'EADDRINUSE';
      reject(
        isTaken
          ? new Problem(`Port ${port} is in use. Choose another: --port ${port + 1}, or --port 0 for any.`)
          : error,
      );
    });
    server.listen(port, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Resolves when the command is ended. */
function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve());
    if (signal.aborted) resolve();
  });
}
