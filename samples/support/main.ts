import { join } from 'node:path';
import { genkit } from 'genkitx-agents';
import { customerMemory } from './agent/customer-memory.ts';
import { defineAgents } from './agent/define-agents.ts';
import { FileOrderBook } from './agent/file-order-book.ts';
import type { ReportState } from './agent/report-agent.ts';
import type { SupportState } from './agent/state.ts';
import { isLoopback, prepareFolder, readConfig, USAGE, type Config } from './config.ts';
import { endInOrder } from './end-in-order.ts';
import { chooseModel, STEP_PACES, type SupportModel } from './models/choose-model.ts';
import { keepInClear, keepPrivately, type Keeping } from './privacy.ts';
import { startServer, type RunningServer } from './server/start-server.ts';
import { SetupError } from './setup-error.ts';

/** A report whose process died is taken over soon after the next process starts. */
const background = { recover: true, heartbeatIntervalMs: 1_000, leaseMs: 4_000 };

async function main(): Promise<void> {
  const [argument] = process.argv.slice(2);
  if (argument === '--help') return console.log(USAGE);
  if (argument) throw new SetupError(`'${argument}' is not understood; 'npm start -- --help' lists the settings.`);

  const config = readConfig(process.env);
  const sessions = join(config.dataDir, 'sessions');
  prepareFolder(sessions);
  const keeping = config.privacy ? await keepPrivately(config.keyFile) : keepInClear(config.keyFile);
  const book = await FileOrderBook.open(config.dataDir, keeping.redact);
  const model = await chooseModel(config);

  const ai = genkit({ plugins: model.plugins });
  const store = keeping.openStore<SupportState>(sessions);
  const reports = keeping.openStore<ReportState>(join(config.dataDir, 'reports'));
  const memories = keeping.openMemories(join(config.dataDir, 'memories'));
  const memory = customerMemory(ai, { store: memories, model, redact: keeping.redact });
  const agents = defineAgents(ai, {
    book,
    model,
    memory,
    store,
    reports,
    stepMs: STEP_PACES * config.offlinePaceMs,
    background,
  });

  const server = await startServer({ ...config, ai, agents, store, model });
  const close = async () => {
    await server.stop();
    await memory.close();
    await memories.close();
    await store.close();
    await reports.close();
  };
  endInOrder({ close, fail });
  console.log(greeting(server, model, { ...config, ...keeping }));
}

function greeting(
  { url }: RunningServer,
  { label, note }: SupportModel,
  { dataDir, host, notes }: Config & Keeping,
): string {
  const body = { data: { message: { role: 'user', content: [{ text: 'Where is order 1042?' }] } } };
  const lines = [
    'The support agent is ready.',
    '',
    `  Chat page  ${url}/`,
    `  Agent      ${url}/api/support`,
    `  Model      ${label}${note ? ` (${note})` : ''}`,
    `  Data       ${dataDir}`,
    ...notes,
    '',
    'Without a browser:',
    '',
    `  curl -s ${url}/api/support -H 'content-type: application/json' -d '${JSON.stringify(body)}'`,
    '',
  ];
  if (!isLoopback(host)) {
    lines.push(
      `WARNING: HOST is ${host} and there is no log-in: every client that reaches this port can read everything.`,
      '',
    );
  }
  return lines.join('\n');
}

function fail(error: unknown): void {
  console.error(error instanceof SetupError ? error.message : error);
  process.exit(1);
}

main().catch(fail);
