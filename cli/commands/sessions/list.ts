import { Option, type Command } from 'commander';
import type { SessionSummary, SnapshotStatus } from 'genkitx-agents';
import type { Io } from '../../io.ts';
import { time } from '../../output/text.ts';
import { parseCount } from '../numbers.ts';
import { itemsOf, printItems, storeCommand, withStore, type StoreFlags } from '../with-store.ts';

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
    .option('-n, --limit <count>', 'the most sessions to show', parseCount, 50)
    .option('--owner <id>', 'only the sessions of this user')
    .option('--agent <name>', 'only the sessions of this agent')
    .addOption(
      new Option('--status <status>', 'only the sessions whose latest snapshot has this status').choices(STATUSES),
    )
    .action((flags: ListFlags) =>
      withStore(io, flags, ['list'], async ({ store, caller }) => {
        const sessions = itemsOf((page) =>
          store.listSessions({
            ...caller,
            ...page,
            limit: Math.min(flags.limit + 1, page.limit),
            ...(flags.owner !== undefined && { ownerId: flags.owner }),
          }),
        );
        await printItems(io, flags, matching(sessions, flags), 'No sessions.', [
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
      }),
    );
}

async function* matching(
  sessions: AsyncIterable<SessionSummary>,
  { agent, status }: ListFlags,
): AsyncGenerator<SessionSummary> {
  for await (const session of sessions) {
    if ((agent ?? session.agent) === session.agent && (status ?? session.status) === session.status) yield session;
  }
}
