/** The store turn, compared with the savers of LangGraph.js and the in-memory session service of Google's Agent Development Kit. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContenderSpec } from './contender.ts';
import type { PeerRequest, PeerSpec } from './extra/peer-contender.ts';
import { bytesAtRest, makeFolder, single, spread } from './measure.ts';
import { Contender, race } from './race.ts';
import type { Figure, Report } from './report.ts';

const PEERS = new URL('./extra/peer-contender.ts', import.meta.url);
/** The savers write each state whole, so a longer session needs much time and disk space. */
const MOST_TURNS = 500;
const WINDOW = 25;
const TIMES_FASTER = 10;
const TIMES_SMALLER = 50;

interface Entry {
  readonly contender: Contender;
  readonly label: string;
}

export async function benchPeers(report: Report, wanted: number): Promise<void> {
  const turns = Math.min(wanted, MOST_TURNS);
  const folder = makeFolder();
  const started: Contender[] = [];
  const start = async (label: string, spec: ContenderSpec | PeerSpec, script?: URL): Promise<Entry> => {
    if (spec.folder !== undefined) await mkdir(spec.folder, { recursive: true });
    // Both kinds of contenders support the requests that are used here.
    const contender = await Contender.start(spec, script);
    started.push(contender);
    return { contender, label };
  };
  const peer = (label: string, kind: PeerSpec['kind']) =>
    start(label, { name: kind, kind, folder: join(folder, kind) }, PEERS);
  const files = (durability: 'fast' | 'full') =>
    start(`files, '${durability}'`, {
      name: durability,
      kind: 'file',
      folder: join(folder, durability),
      options: { durability },
    });
  try {
    const memory = await start('in memory', { name: 'memory', kind: 'memory' });
    const fast = await files('fast');
    const full = await files('full');
    const langgraph = await peer('LangGraph memory', 'langgraph-memory');
    const sqlite = await peer('LangGraph SQLite', 'langgraph-sqlite');
    const flushed = await peer('LangGraph SQLite, flushed', 'langgraph-sqlite-flushed');
    const postgres = await peer('LangGraph Postgres (PGlite)', 'langgraph-postgres');
    const adk = await peer('ADK in memory', 'adk-memory');
    // Shows how much of the goal the flushes alone take.
    const flushes = await peer('two flushes side by side, then one', 'flushes');
    report.start('beside LangGraph and ADK', turns);
    await race(started, turns, report);
    report.add(
      faster(memory, langgraph, turns, TIMES_FASTER),
      faster(fast, sqlite, turns, TIMES_FASTER),
      faster(full, flushed, turns, TIMES_FASTER),
      faster(full, sqlite, turns),
      faster(full, flushes, turns),
      faster(fast, postgres, turns, TIMES_FASTER),
      faster(full, postgres, turns, TIMES_FASTER),
      faster(memory, adk, turns),
    );
    const information = await memory.contender.ask({ do: 'information' });
    const heap = (await memory.contender.ask({ do: 'heap' })) / information;
    const disk = (await bytesAtRest(join(folder, 'fast'))).bytes / information;
    const smaller = async (label: string, ours: number, than: Entry, times?: number): Promise<Figure> => ({
      name: `${label}, bytes at rest for a byte of new information after ${turns} turns`,
      unit: 'bytes',
      ours: single(ours),
      theirs: single((await (than.contender as unknown as Contender<PeerRequest>).ask({ do: 'atRest' })) / information),
      peer: than.label,
      ...goalOf(times, turns),
    });
    report.add(
      await smaller('in memory', heap, langgraph, TIMES_SMALLER),
      await smaller('files', disk, sqlite, TIMES_SMALLER),
      await smaller('files', disk, postgres, TIMES_SMALLER),
      await smaller('in memory', heap, adk),
    );
  } finally {
    await Promise.all(started.map((contender) => contender.stop()));
  }
}

function faster(ours: Entry, theirs: Entry, turns: number, times?: number): Figure {
  return {
    name: `${ours.label}, store turn ${turns}`,
    unit: 'ms',
    ours: spread(ours.contender.times.slice(-WINDOW)),
    theirs: spread(theirs.contender.times.slice(-WINDOW)),
    peer: theirs.label,
    ...goalOf(times, turns),
  };
}

/** The goals apply to a long session. */
function goalOf(times: number | undefined, turns: number): Pick<Figure, 'goal'> {
  return times !== undefined && turns === MOST_TURNS ? { goal: { atMostOfTheirs: 1 / times } } : {};
}
