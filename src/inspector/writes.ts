import type { InspectorWrites } from './api.ts';
import type { Params } from './http/params.ts';
import { approveText, discardJob, discardText, removeMemory, replayJob } from './memory/writes.ts';
import type { Source } from './source.ts';
import { fork } from './write/fork.ts';
import { abort, deleteSession } from './write/session-writes.ts';

type Write<Answer> = (source: Source, params: Params, signal: AbortSignal) => Promise<Answer>;

/** The functions of the writes, by their paths below `api/`. */
export const WRITES: { readonly [K in keyof InspectorWrites]: Write<InspectorWrites[K]['answers']> } = {
  abort,
  fork,
  'delete-session': deleteSession,
  'memory/remove': removeMemory,
  'memory/approve': approveText,
  'memory/discard': discardText,
  'memory/replay': replayJob,
  'memory/discard-job': discardJob,
};
