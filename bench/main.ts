/**
 * `npm run bench`: every figure of the README and the docs, compared with Genkit's own stores and agents, in one run.
 * `npm run bench -- stores --turns 500` selects a part and a length, `--check` exits non-zero if a goal is missed.
 * `npm run bench -- memory-search --dialogues FOLDER` searches dialogues of your own.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { benchAbort } from './abort.ts';
import { benchContext, benchContextSpeed } from './context/main.ts';
import { benchFirestore, benchFirestoreAbort, stopEmulator } from './firestore.ts';
import { benchLoad } from './load.ts';
import { removeFolders } from './measure.ts';
import { benchMemoryJobs } from './memory/jobs.ts';
import { benchMemorySearch, benchMemoryTurn } from './memory/main.ts';
import { benchMemoryQuality } from './memory/quality.ts';
import { benchPeers } from './peers.ts';
import { isMachineFree, Report } from './report.ts';
import { benchErase, benchPrivateTurns } from './privacy.ts';
import { benchRuntime } from './runtime.ts';
import { benchState } from './state.ts';
import { benchCrowd, benchFile, benchInMemory } from './stores.ts';

const PARTS = {
  'in-memory': (report: Report, turns: number) => benchInMemory(report, turns),
  file: (report: Report, turns: number) => benchFile(report, turns),
  crowd: (report: Report) => benchCrowd(report, 100_000),
  peers: (report: Report, turns: number) => benchPeers(report, turns),
  runtime: (report: Report, turns: number) => benchRuntime(report, turns),
  firestore: (report: Report, turns: number) => benchFirestore(report, turns),
  'abort-local': (report: Report) => benchAbort(report),
  'abort-firestore': (report: Report, turns: number) => benchFirestoreAbort(report, turns),
  load: (report: Report, turns: number) => benchLoad(report, turns),
  'context-size': (report: Report, turns: number) => benchContext(report, turns),
  'context-speed': (report: Report, turns: number) => benchContextSpeed(report, turns),
  'memory-search': (report: Report, _turns: number, dialogues?: string) => benchMemorySearch(report, dialogues),
  'memory-turn': (report: Report) => benchMemoryTurn(report),
  'memory-jobs': (report: Report) => benchMemoryJobs(report),
  'memory-quality': (report: Report) => benchMemoryQuality(report),
  state: (report: Report) => benchState(report),
  'privacy-turns': (report: Report, turns: number) => benchPrivateTurns(report, turns),
  'privacy-erase': (report: Report, turns: number) => benchErase(report, turns),
};

type Part = keyof typeof PARTS;

const DEFAULT_TURNS = 1000;

const GROUPS: Record<string, Part[]> = {
  memory: ['memory-search', 'memory-turn', 'memory-jobs', 'memory-quality'],
  stores: ['in-memory', 'file', 'crowd', 'peers'],
  abort: ['abort-local', 'abort-firestore'],
  context: ['context-size', 'context-speed'],
  privacy: ['privacy-turns', 'privacy-erase'],
};

function fail(message: string): never {
  console.error(`bench: ${message}`);
  process.exit(2);
}

function options(): { parts: Part[]; turns: number; check: boolean; dialogues: string | undefined } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        turns: { type: 'string', default: String(DEFAULT_TURNS) },
        check: { type: 'boolean', default: false },
        dialogues: { type: 'string' },
      },
    });
    const turns = Number(values.turns);
    if (!Number.isInteger(turns) || turns < 10) fail('--turns must be a whole number of at least 10.');
    const names = positionals.length > 0 ? positionals : Object.keys(PARTS);
    const parts = names.flatMap(
      (name) =>
        GROUPS[name] ??
        (name in PARTS
          ? [name as Part]
          : fail(
              `unknown part '${name}'; the parts are ${[...Object.keys(GROUPS), ...Object.keys(PARTS)].join(', ')}.`,
            )),
    );
    return { parts, turns, check: values.check, dialogues: values.dialogues };
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

const { parts, turns, check, dialogues } = options();
const isStandard = turns === DEFAULT_TURNS && dialogues === undefined;
const results = fileURLToPath(new URL('./results', import.meta.url));
if (!isMachineFree()) console.error('bench: this machine is busy: timings are printed, but not kept in bench/results.');
const missed: string[] = [];
try {
  for (const part of parts) {
    const report = new Report();
    await PARTS[part](report, turns, dialogues);
    // Written part by part, so that a later failure loses no results.
    missed.push(...(await report.finish(results, isStandard ? part : undefined)));
  }
} finally {
  await stopEmulator();
  removeFolders();
}
for (const name of missed) console.error(`missed: ${name}`);
if (check && missed.length > 0) process.exitCode = 1;
