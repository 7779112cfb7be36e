import type { Command } from 'commander';
import type { SnapshotMetadata } from 'genkitx-agents';
import type { Io } from '../../io.ts';
import { lastPrompt } from '../../output/conversation.ts';
import { count, oneLine, safe, time } from '../../output/text.ts';
import { treeLines } from '../../output/tree.ts';
import { itemsOf, printJson, storeCommand, withStore, type StoreFlags } from '../with-store.ts';
import { noSuchSession } from './find.ts';

interface TreeFlags extends StoreFlags {
  readonly messages?: boolean;
}

/** `sessions tree ID` */
export function addTree(parent: Command, io: Io): void {
  storeCommand(parent, 'tree <session>', 'all snapshots of a session, with its branches')
    .option('--messages', "the user's message of each turn; reads every state")
    .action((sessionId: string, flags: TreeFlags) =>
      withStore(io, flags, ['list'], async ({ store, caller }) => {
        const snapshots: SnapshotMetadata[] = [];
        for await (const one of itemsOf((page) => store.listSnapshots({ ...caller, ...page, sessionId }))) {
          snapshots.push(one);
          if (flags.json) await printJson(io, one);
        }
        if (snapshots.length === 0) throw noSuchSession(sessionId);
        if (flags.json) return;
        const texts = new Map<string, string>();
        for (const [i, { snapshotId }] of flags.messages ? snapshots.entries() : []) {
          io.progress(`${i} of ${count(snapshots.length, 'snapshot')} read`);
          texts.set(snapshotId, lastPrompt(await store.getSnapshot({ ...caller, snapshotId, frozen: true })));
        }
        for (const line of treeLines(snapshots, (one) => describe(one, texts.get(one.snapshotId)))) {
          await io.print(`${line}\n`);
        }
      }),
    );
}

function describe(snapshot: SnapshotMetadata, text: string | undefined): string {
  const { snapshotId, status, createdAt, finishReason, error } = snapshot;
  const reason = finishReason && finishReason !== 'stop' && finishReason !== status ? ` (${safe(finishReason)})` : '';
  const parts = [safe(snapshotId), `${status ?? 'no status'}${reason}`, time(createdAt)];
  if (text) parts.push(oneLine(text));
  if (error) parts.push(oneLine(error.message));
  return parts.join('  ');
}
