/** Serve agents over HTTP. Needs no Express: `agentRouter` fits it, `agentHandler` fits everything that speaks `Request` and `Response`. */
export { agentHandler } from '../src/server/agent-handler.ts';
export { agentRouter, type AgentRouter } from '../src/server/agent-router.ts';
export type { AgentServerOptions } from '../src/server/options.ts';
export type { AgentSource, ServedAction, ServedAgent, ServedAgents } from '../src/server/request/routes.ts';
