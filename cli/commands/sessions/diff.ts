import type { Command } from 'commander';
import type { Io } from '../../io.ts';
import { differenceLines } from '../../output/differences.ts';
import { importPackage } from '../../stores/packages.ts';
import { printJson, storeCommand, withStore, type StoreFlags } from '../with-store.ts';
import { mustGetSnapshot } from './find.ts';

/** `sessions diff A B` */
export function addDiff(parent: Command, io: Io): void {
  storeCommand(parent, 'diff <a> <b>', 'what changed from one snapshot to another: messages, state, artifacts').action(
    (a: string, b: string, flags: StoreFlags) =>
      withStore(io, flags, [], async (open) => {
        const { snapshotChanges } = await importPackage(() => import('genkitx-agents/inspector'));
        const found = snapshotChanges(await mustGetSnapshot(open, a), await mustGetSnapshot(open, b));
        if (flags.json) await printJson(io, found);
        else for (const line of differenceLines(found)) await io.print(`${line}\n`);
      }),
  );
}
