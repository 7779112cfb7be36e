/** The client of agents that are served over HTTP. Runs in browsers and in Node. */
export { applyPatch } from '../src/client/apply-unchecked.ts';
export { AgentError, type AgentErrorOptions } from '../src/client/errors.ts';
export {
  runFlow,
  streamFlow,
  type FlowStream,
  type RunFlowOptions,
  type StreamFlowOptions,
} from '../src/client/http/flow.ts';
export type { ReconnectOptions } from '../src/client/http/reconnect.ts';
export { remoteAgent, type RemoteAgentOptions } from '../src/client/http/remote-agent.ts';
export type { ErrorStatus } from '../src/error-status.ts';
export type * from '../src/client/types.ts';
export { PatchError, type ApplyOptions } from '../src/json/patch/apply-patch.ts';
export type { JsonPatch, JsonPatchOperation } from '../src/json/patch/diff.ts';
