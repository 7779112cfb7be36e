import type { Command } from 'commander';
import type { Memory } from 'genkitx-agents/memory';
import { Problem } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { brief, safe, time } from '../../output/text.ts';
import { printJson, storeCommand } from '../with-store.ts';
import { scoped, scopeIdOf, withMemories, type ScopeFlags } from './scope.ts';

/** `memories show ID` */
export function addShow(parent: Command, io: Io): void {
  scoped(storeCommand(parent, 'show <id>', 'a memory with its sources and its earlier revisions')).action(
    (id: string, flags: ScopeFlags) =>
      withMemories(io, flags, async ({ manager, caller }) => {
        const scope = scopeIdOf(flags);
        const [memory] = await manager.store.get(scope, [id], caller);
        if (!memory)
          throw new Problem(`The scope has no memory '${id}'. 'memories list' shows the memories of the scope.`);
        const revisions = await manager.store.revisions(scope, id, caller);
        if (flags.json) await printJson(io, { memory, revisions });
        else for (const line of memoryLines(memory, revisions)) await io.print(`${line}\n`);
      }),
  );
}

function* memoryLines(memory: Memory, revisions: readonly Memory[]): Generator<string> {
  const { id, kind, text, data, confidence, importance, topics, validFrom, validTo, supersededBy, sources } = memory;
  yield safe(text);
  if (data !== undefined) yield `data: ${brief(data, 500)}`;
  yield safe(
    `${id} · ${kind} · confidence ${confidence.toFixed(2)} · importance ${importance.toFixed(2)} · ${topics.join(', ')}`,
  );
  const end =
    validTo === undefined
      ? ''
      : ` until ${time(validTo)}${supersededBy === undefined ? '' : `, replaced by ${safe(supersededBy)}`}`;
  yield `valid from ${time(validFrom)}${end}`;
  yield* ['', 'sources'];
  for (const { id: source, type, trust, statement, sessionId, snapshotId, from, to, at } of sources) {
    const messages = from === undefined ? '' : `, messages ${from} to ${(to ?? from + 1) - 1}`;
    const place =
      sessionId === undefined
        ? ''
        : ` · session ${sessionId}${snapshotId === undefined ? '' : `, snapshot ${snapshotId}`}${messages}`;
    yield `  ${safe(`${time(at)} · ${source} · ${type}, trust ${trust}${place}`)}`;
    yield `    ${safe(statement)}`;
  }
  yield* ['', 'revisions'];
  for (const one of revisions)
    yield `  ${one.revision}  ${time(one.updatedAt)}  ${one.confidence.toFixed(2)}  ${safe(one.text)}`;
}
