/** A page that shows sessions, runs, memories and the models' inputs, for your own server. `npx genkitx-agents inspect` starts it too. */
export { inspector, type Inspector } from '../src/inspector/inspector.ts';
export { snapshotChanges } from '../src/inspector/read/changes.ts';
export { listRuns } from '../src/inspector/read/runs.ts';
export type { RunFacts, RunLine, RunState, SnapshotChanges, ValueChange } from '../src/inspector/api.ts';
export type { InspectorOptions } from '../src/inspector/options.ts';
export type { MemoryManager } from '../src/memory/manager.ts';
export type { AgentSource, ServedAction, ServedAgent, ServedAgents } from '../src/server/request/routes.ts';
export { nodeListener, type NodeListener } from '../src/server/node-listener.ts';
