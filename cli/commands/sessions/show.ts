import type { Command } from 'commander';
import type { Io } from '../../io.ts';
import { conversation } from '../../output/conversation.ts';
import { printJson, storeCommand, withStore, type StoreFlags } from '../with-store.ts';
import { mustGetSession, mustGetSnapshot } from './find.ts';

interface ShowFlags extends StoreFlags {
  readonly snapshot?: boolean;
  readonly full?: boolean;
}

/** `sessions show ID` */
export function addShow(parent: Command, io: Io): void {
  storeCommand(parent, 'show <id>', 'a session as a conversation, up to its latest snapshot')
    .option('--snapshot', 'the id names a snapshot')
    .option('--full', 'tool calls, values and artifacts in full, not in one line')
    .action((id: string, flags: ShowFlags) =>
      withStore(io, flags, [], async (open) => {
        const snapshot = await (flags.snapshot ? mustGetSnapshot : mustGetSession)(open, id);
        if (flags.json) await printJson(io, snapshot);
        else for (const line of conversation(snapshot, { isFull: flags.full ?? false })) await io.print(`${line}\n`);
      }),
    );
}
