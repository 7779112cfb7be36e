export { contextWindow } from '../src/context/window.ts';
export { lastTurns, type LastTurnsOptions } from '../src/context/history/last-turns.ts';
export { sessionMemories, type SessionMemoriesOptions } from '../src/context/history/session-memories.ts';
export { tokenBudget, type TokenBudgetOptions } from '../src/context/history/token-budget.ts';
export { clearToolOutputs, type ClearToolOutputsOptions } from '../src/context/history/clear-tool-outputs.ts';
export {
  compactIdle,
  type CompactIdleOptions,
  type CompactIdleResult,
} from '../src/context/compaction/compact-idle.ts';
export { endTopic, type EndTopicInput } from '../src/context/tools/end-topic.ts';
export { readArtifact, type ReadArtifactInput } from '../src/context/tools/read-artifact.ts';
export { readSummary, type ReadSummaryOptions } from '../src/context/compaction/read-summary.ts';
export type { CompactionRecord } from '../src/context/compaction/record.ts';
export { summarize, type SummarizeOptions, type SummarizeStrategy } from '../src/context/compaction/summarize.ts';
export { type Summarizer, type Summarized, type SummaryRequest } from '../src/context/compaction/summarizer.ts';
export { fewShot, knowledge, type FewShotOptions, type KnowledgeOptions } from '../src/context/fetch/retrieve.ts';
export { ContextOverflowError } from '../src/errors.ts';
export type * from '../src/context/types.ts';
export type * from '../src/session/turn-memory.ts';
