import { defineAction } from '@genkit-ai/core';
import { z } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { capabilitiesOf, type SnapshotStore } from '../../store/contract.ts';
import { withoutInternals } from '../open/visible-snapshot.ts';

const PageSchema = z.object({
  limit: z.number().int().min(1).max(1000).optional().describe('Maximum number of items. Default: 100.'),
  cursor: z.string().optional().describe('nextCursor of the previous page.'),
});

const SessionSchema = z.object({ sessionId: z.string() });

const PruneSchema = z.object({
  maxAgeMs: z
    .number()
    .optional()
    .describe(
      'Removes snapshots older than this, except leaves, running ones and those that a session continues from.',
    ),
  idleMs: z.number().optional().describe('Removes whole sessions that were not written for this long, in ms.'),
  maxChainLength: z
    .number()
    .int()
    .optional()
    .describe('Keeps only this many of the newest snapshots on every path, and those that a session continues from.'),
  dryRun: z.boolean().optional().describe('Only counts the items that would be removed.'),
});

const SessionPageSchema = PageSchema.extend({
  ownerId: z.string().optional().describe('Only the sessions of this user. Needs a store with capabilities.details.'),
});

/**
 * Registers `listSessions`, `listSnapshots`, `deleteSession` and `pruneSessions` in a namespace, as far as the store supports them. They work
 * on the tenant of the caller's context.
 */
export function registerSessionActions(registry: Registry, namespace: string, store: SessionStore): void {
  const can = capabilitiesOf(store);
  // The store has the methods that its capabilities declare.
  const sessions = store as SnapshotStore;
  const named = (name: string, description: string) => ({
    actionType: 'custom' as const,
    name: `${namespace}/${name}`,
    description,
  });
  if (can.list) {
    defineAction(
      registry,
      {
        ...named('listSessions', 'Lists the sessions, the one written last first.'),
        inputSchema: can.details ? SessionPageSchema : PageSchema,
      },
      (page, { context }) => sessions.listSessions({ ...page, context }),
    );
    defineAction(
      registry,
      {
        ...named('listSnapshots', "Lists a session's snapshots without their states, oldest first."),
        inputSchema: SessionSchema.merge(PageSchema),
      },
      async (page, { context }) => {
        const { items, ...rest } = await sessions.listSnapshots({ ...page, context });
        return { ...rest, items: items.map(withoutInternals) };
      },
    );
  }
  if (can.delete) {
    defineAction(
      registry,
      { ...named('deleteSession', 'Removes a session with all its snapshots.'), inputSchema: SessionSchema },
      ({ sessionId }, { context }) => sessions.deleteSession({ sessionId, context }),
    );
  }
  if (can.prune) {
    defineAction(
      registry,
      {
        ...named('pruneSessions', 'Removes the sessions and snapshots that a retention policy names.'),
        inputSchema: PruneSchema,
      },
      ({ dryRun, ...policy }, { context }) => sessions.prune(policy, { dryRun, context }),
    );
  }
}
