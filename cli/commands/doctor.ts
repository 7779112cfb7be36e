import type { Command } from 'commander';
import type { CheckStore, SnapshotStore } from 'genkitx-agents';
import { Problem } from '../failures.ts';
import type { Io } from '../io.ts';
import { count, safe } from '../output/text.ts';
import { parseDuration } from './numbers.ts';
import { printJson, storeCommand, withStore, type StoreFlags } from './with-store.ts';

interface DoctorFlags extends StoreFlags {
  readonly repair?: boolean;
  readonly grace?: number;
}

/** `doctor` */
export function addDoctor(program: Command, io: Io): void {
  storeCommand(program, 'doctor', 'reads a whole store, and reports what is damaged, orphaned or expired')
    .option('--repair', 'removes orphans that are older than --grace, and nothing else')
    .option('--grace <duration>', 'younger orphans may belong to a running save. Default: 1h', parseDuration)
    .action((flags: DoctorFlags) =>
      withStore(io, flags, ['check'], async ({ store, caller }) => {
        const { findings, ...counts } = await (store as SnapshotStore & CheckStore).check({
          ...caller,
          repair: flags.repair ?? false,
          ...(flags.grace !== undefined && { graceMs: flags.grace }),
          onProgress: ({ sessions, snapshots }) =>
            io.progress(`${count(sessions, 'session')}, ${count(snapshots, 'snapshot')} read`),
        });
        for (const finding of findings) {
          if (flags.json) {
            await printJson(io, finding);
            continue;
          }
          const { kind, tenant, sessionId, snapshotId, place, problem, advice, isRepaired } = finding;
          const names = [
            `tenant ${tenant}`,
            sessionId !== undefined && `session ${sessionId}`,
            snapshotId !== undefined && `snapshot ${snapshotId}`,
            place !== undefined && `at ${place}`,
          ].filter(Boolean);
          await io.print(
            `${kind}: ${safe(names.join(', '))}\n  ${safe(problem)}\n  ${isRepaired ? 'Removed.' : safe(advice)}\n`,
          );
        }
        const { sessions, snapshots, records, scopes } = counts;
        const read =
          `Read: ${count(sessions, 'session')}, ${count(snapshots, 'snapshot')}, ${count(records, 'session record')}, ` +
          `${count(scopes, 'record')} of users and apps.`;
        const left = findings.filter(({ isRepaired }) => !isRepaired);
        if (left.length === 0) {
          io.say(
            `${read} ${findings.length === 0 ? 'No problems found.' : `Removed: ${count(findings.length, 'orphan')}.`}`,
          );
          return;
        }
        const kinds = new Map<string, number>();
        for (const { kind } of left) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        throw new Problem(`${read} Found: ${[...kinds].map(([kind, number]) => `${number} ${kind}`).join(', ')}.`);
      }),
    );
}
