import type { InspectorReads } from './api.ts';
import type { Params } from './http/params.ts';
import {
  listJobs,
  listMemories,
  listQuarantine,
  listScopes,
  readSource,
  searchMemories,
  showMemory,
} from './memory/reads.ts';
import { readChanges, readDiff } from './read/changes.ts';
import { readRuns } from './read/runs.ts';
import { readSeen } from './read/seen.ts';
import { readSessions } from './read/sessions.ts';
import { readSnapshotView } from './read/snapshot-view.ts';
import { readTree } from './read/tree.ts';
import type { Source } from './source.ts';

type Read<Answer> = (source: Source, params: Params) => Promise<Answer>;

/** The functions of the reads, by their paths below `api/`. */
export const READS: { readonly [K in Exclude<keyof InspectorReads, 'start'>]: Read<InspectorReads[K]['answers']> } = {
  sessions: readSessions,
  tree: readTree,
  snapshot: readSnapshotView,
  seen: readSeen,
  diff: readDiff,
  changes: readChanges,
  runs: readRuns,
  'memory/scopes': listScopes,
  'memory/list': listMemories,
  'memory/search': searchMemories,
  'memory/show': showMemory,
  'memory/source': readSource,
  'memory/quarantine': listQuarantine,
  'memory/jobs': listJobs,
};
