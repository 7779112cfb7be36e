import { visibleText } from '../../session/log/transcript.ts';
import type { Memory } from '../../store/memory/contract.ts';
import type { MemoryManager } from '../manager.ts';
import { newestSourceTime } from '../pipeline/consolidate/confidence.ts';
import type { MemoryScope } from '../scopes.ts';
import type { FoundMemory } from '../search/types.ts';

/** Memories of a scope that were found. */
export interface FoundInScope {
  readonly scope: MemoryScope;
  readonly memories: readonly FoundMemory[];
}

/** The `k` best memories of all scopes, best first. */
export function bestOf(found: readonly FoundInScope[], k: number): Memory[] {
  const all = found.flatMap(({ memories }) => memories);
  all.sort((a, b) => b.score - a.score);
  return all.slice(0, k).map(({ memory }) => memory);
}

/** Notes the use of the placed memories, each in the scope in which it was found. */
export function noteUses(manager: MemoryManager, found: readonly FoundInScope[], placed: readonly Memory[]): void {
  for (const { scope, memories } of found) {
    const ids = memories.filter(({ memory }) => placed.includes(memory)).map(({ memory }) => memory.id);
    if (ids.length > 0) manager.noteUse(scope, ids);
  }
}

/** The line for a memory in a request: its text, its confidence and the date of its last source. */
export function memoryLine(memory: Memory): string {
  const { text, confidence } = memory;
  return `${visibleText(text)} (${confidence.toFixed(2)}, ${newestSourceTime(memory).slice(0, 10)})`;
}

/** The end of a {@link memoryLine}. */
const LINE_END = /\s*\(\d\.\d\d, \d{4}-\d\d-\d\d\)$/;

/** The text of a memory that a model repeats; the model may repeat the whole {@link memoryLine}. */
export function textOfLine(line: string): string {
  return visibleText(line.replace(LINE_END, ''));
}
