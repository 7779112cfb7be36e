import type { Command } from 'commander';
import type { Memory } from 'genkitx-agents/memory';
import type { Io } from '../../io.ts';
import { count, time } from '../../output/text.ts';
import type { OpenMemories } from '../../stores/open-memories.ts';
import { parseCount } from '../numbers.ts';
import { itemsOf, printItems, storeCommand } from '../with-store.ts';
import { assertNoOwner, mustScope, scoped, scopeIdOf, withMemories, type ScopeFlags } from './scope.ts';

interface ListFlags extends ScopeFlags {
  readonly all?: boolean;
  readonly asOf?: string;
  readonly limit: number;
}

/** `memories list` */
export function addList(parent: Command, io: Io): void {
  scoped(storeCommand(parent, 'list', 'the memories of a scope, the one updated last first; without --app the scopes'))
    .option('--all', 'also those that are not valid any more')
    .option('--as-of <time>', 'the scope as it was at this time (ISO 8601)')
    .option('-n, --limit <count>', 'the most memories or scopes to show', parseCount, 50)
    .action(async (flags: ListFlags) => {
      assertNoOwner(flags);
      await withMemories(io, flags, (open) =>
        flags.app === undefined ? listScopes(io, flags, open) : listMemories(io, flags, open),
      );
    });
}

async function listScopes(io: Io, { json }: ListFlags, { manager, caller }: OpenMemories): Promise<void> {
  const scopes = itemsOf((page) => manager.store.listScopes({ ...caller, ...page }));
  await printItems(io, { json }, scopes, 'No memories.', [
    { name: 'app', of: ({ appName }) => appName },
    { name: 'user', of: (id) => (id.scope === 'user' ? id.userId : undefined) },
    { name: 'session', of: (id) => (id.scope === 'session' ? id.sessionId : undefined) },
  ]);
}

async function listMemories(io: Io, flags: ListFlags, open: OpenMemories): Promise<void> {
  const none = "No memories to show; 'memories list' without --app shows the scopes.";
  await printItems(io, flags, memoriesOf(flags, open), none, [
    { name: 'id', of: ({ id }) => id },
    { name: 'confidence', of: ({ confidence }) => confidence.toFixed(2) },
    { name: 'updated (UTC)', of: ({ updatedAt }) => time(updatedAt) },
    { name: 'valid until', of: ({ validTo }) => time(validTo) },
    { name: 'topics', of: ({ topics }) => topics.join(', ') },
    { name: 'text', of: ({ text }) => text },
  ]);
  const waiting = await open.manager.quarantine.list({ scope: await mustScope(flags, open) });
  if (waiting.length > 0)
    io.say(`Waiting for a decision: ${count(waiting.length, 'text')}. 'memories quarantine' shows them.`);
}

async function* memoriesOf(flags: ListFlags, { manager, caller }: OpenMemories): AsyncGenerator<Memory> {
  const { limit, asOf, all } = flags;
  const query = { ...caller, ...(asOf !== undefined && { asOf }), ...(all && { filter: { includeInvalid: true } }) };
  const scope = scopeIdOf(flags);
  const found = itemsOf(({ limit: most, cursor }) =>
    manager.store.query(scope, { ...query, k: Math.min(limit + 1, most), ...(cursor !== undefined && { cursor }) }),
  );
  for await (const { memory } of found) yield memory;
}
