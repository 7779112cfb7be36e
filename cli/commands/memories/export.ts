import type { Command } from 'commander';
import type { Io } from '../../io.ts';
import { outOption, writeLines, type OutFlags } from '../../output/lines.ts';
import { count } from '../../output/text.ts';
import { storeCommand } from '../with-store.ts';
import { mustScope, scoped, withMemories, type ScopeFlags } from './scope.ts';

/** `memories export` */
export function addExport(parent: Command, io: Io): void {
  scoped(storeCommand(parent, 'export', 'all data of a scope, as JSON Lines'))
    .addOption(outOption())
    .action((flags: ScopeFlags & OutFlags) =>
      withMemories(io, flags, async (open) => {
        const lines = open.manager.export({ scope: await mustScope(flags, open) });
        // A memory that changes meanwhile has several lines.
        const ids = new Set<string>();
        const shown = async function* (): AsyncGenerator<string> {
          for await (const line of lines) {
            if (line.memory) ids.add(line.memory.id);
            yield `${JSON.stringify(line)}\n`;
          }
        };
        await writeLines(io, flags, shown());
        io.say(`Exported: ${count(ids.size, 'memory', 'memories')}`);
      }),
    );
}
