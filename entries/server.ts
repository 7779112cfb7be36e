/** Serves agents over HTTP: `agentRouter` for Express and `node:http`, `agentHandler` for frameworks with `Request` and `Response`. */
export { agentHandler } from '../src/server/agent-handler.ts';
export { agentRouter, type AgentRouter } from '../src/server/agent-router.ts';
export type { AgentServerOptions } from '../src/server/options.ts';
export type { AgentSource, ServedAction, ServedAgent, ServedAgents } from '../src/server/request/routes.ts';
