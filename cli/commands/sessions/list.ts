import { Option, type Command } from 'commander';
import type { SessionSummary, SnapshotStatus } from 'genkitx-agents';
import type { Io } from '../../io.ts';
import { table } from '../../output/table.ts';
import { time } from '../../output/text.ts';
import { parseCount } from '../numbers.ts';
import { itemsOf, printJson, storeCommand, withStore, type StoreFlags } from '../with-store.ts';

interface ListFlags extends StoreFlags {
  readonly limit: number;
  readonly owner?: string;
  readonly agent?: string;
  readonly status?: string;
}

const STATUSES: readonly SnapshotStatus[] = ['pending', 'completed', 'failed', 'aborted', 'expired'];

/** `sessions list` */
export function addList(parent: Command, io: Io): void {
  storeCommand(parent, 'list', 'the sessions, the one written last first')
    .option('-n, --limit <count>', 'at most so many', parseCount, 50)
    .option('--owner <id>', 'only the sessions of this user')
    .option('--agent <name>', 'only the sessions of this agent')
    .addOption(new Option('--status <status>', 'only those whose latest snapshot has this status').choices(STATUSES))
    .action((flags: ListFlags) =>
      withStore(io, flags, ['list'], async ({ store, caller }) => {
        const { limit, owner: ownerId, agent, status, json } = flags;
        const found: SessionSummary[] = [];
        let hasMore = false;
        const list = { ...caller, ...(ownerId !== undefined && { ownerId }) };
        for await (const session of itemsOf((page) =>
          store.listSessions({ ...list, ...page, limit: Math.min(limit + 1, 1000) }),
        )) {
          if (agent !== undefined && session.agent !== agent) continue;
          if (status !== undefined && session.status !== status) continue;
          hasMore = found.length === limit;
          if (hasMore) break;
          found.push(session);
          if (json) await printJson(io, session);
        }
        if (!json) await io.print(found.length === 0 ? 'No sessions.\n' : tableOf(found));
        if (hasMore) io.say(`There are more; --limit says how many to show (now ${limit}).`);
      }),
    );
}

function tableOf(sessions: readonly SessionSummary[]): string {
  return table(sessions, [
    { name: 'session', of: ({ sessionId }) => sessionId },
    { name: 'status', of: ({ status }) => status },
    { name: 'snapshots', of: ({ snapshotCount }) => snapshotCount },
    { name: 'leaves', of: ({ leafCount }) => leafCount },
    { name: 'tokens', of: ({ usage }) => usage?.['totalTokens'] },
    { name: 'agent', of: ({ agent }) => agent },
    { name: 'owner', of: ({ ownerId }) => ownerId },
    { name: 'written (UTC)', of: ({ updatedAt }) => time(updatedAt) },
    { name: 'title', of: ({ title }) => title },
  ]);
}
