/** The script of a worker process, which learns from sessions with a file store and may be killed at any time. */
import { appendFileSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from 'genkit/registry';
import { memoryManager } from '../../../src/memory/manager.ts';
import { processMemoryJobs } from '../../../src/memory/pipeline/jobs/process-jobs.ts';
import { memoryScope } from '../../../src/memory/scopes.ts';
import { FileMemoryStore } from '../../../stores/file/memory/file-memory-store.ts';
import { Random } from '../../support/random.ts';
import { corroborate } from './corroborate.ts';
import {
  CORROBORATIONS,
  conversation,
  LEASE_MS,
  LIMITS,
  SLOW_CALLS,
  SOURCES,
  TURNS,
  USERS,
  type WorkerOrder,
} from './worker-protocol.ts';

const [folder, seed, order] = process.argv.slice(2) as [string, string, WorkerOrder];
const random = new Random(Number(seed));
const failures = order === 'learn until killed' ? 0.3 : 0;
const slowCalls = order === 'learn one, slowly' ? SLOW_CALLS : 0;
const store = new FileMemoryStore(join(folder, 'memories'));
const lease = LEASE_MS[order];
const passed = join(folder, 'passed-leases');
const noModel = () => Promise.reject(new Error('There is no model.'));
const ai = { registry: {} as Registry, generate: noModel, embedMany: noModel } as never;
const memory = memoryManager(ai, {
  store,
  worker: false,
  limits: { ...LIMITS, leaseMs: lease },
  now: () => Date.now() + (existsSync(passed) ? statSync(passed).size * lease : 0),
  onReport: () => {},
  extract: ({ messages }) => {
    appendFileSync(join(folder, 'calls'), 'x');
    if (statSync(join(folder, 'calls')).size <= slowCalls) {
      process.send!('asked');
      return new Promise<never>(() => {});
    }
    if (random.next() < failures) throw new Error('The model is down.');
    // Each reading has another text, so that a fact that is applied twice is visible.
    return messages.map(({ content: [{ text = '' } = {}] }) =>
      text.startsWith('source') ? `${text} read${random.below(1e9)}` : text,
    );
  },
});
const scopeOf = (source: number) => memoryScope({ scope: 'user', appName: 'chat', userId: `user${source % USERS}` });

process.on('message', () => void carryOut());
process.on('disconnect', () => process.exit());
process.send!('ready');

async function carryOut(): Promise<void> {
  if (order === 'corroborate') {
    await corroborate(memory, `process ${seed}`, CORROBORATIONS);
  } else if (order !== 'learn until killed') {
    const messages = conversation(0, TURNS);
    for (let i = 0; i < 5; i++)
      await memory.ingest({ scope: scopeOf(0), source: { id: 'source0' }, messages, wait: true });
  } else {
    // Runs until the process is killed.
    for (;;) {
      const source = random.below(SOURCES);
      const messages = conversation(source, 1 + random.below(TURNS));
      await memory.ingest({ scope: scopeOf(source), source: { id: `source${source}` }, messages });
      await processMemoryJobs(memory);
    }
  }
  await memory.close();
  await store.close();
  process.send!('done');
}
