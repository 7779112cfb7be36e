/** Conversations with agents in a page: a hook for React, and a transport for the AI SDK's `useChat`. Needs `react`. */
export { AgentError } from '../src/client/errors.ts';
export {
  agentTransport,
  type AgentChatTransport,
  type AgentTransportOptions,
  type ChatRequest,
} from '../src/react/agent-transport.ts';
export {
  chatMessagesOf,
  type ChatMessage,
  type ReplyMetadata,
  type StoredChatMessage,
  type WaitsFor,
} from '../src/react/ui-messages.ts';
export type { TurnStorage } from '../src/react/kept-turns.ts';
export { LiveChat } from '../src/react/live-chat.ts';
export type { SnapshotNode } from '../src/react/snapshot-tree.ts';
export type * from '../src/react/types.ts';
export { useAgent, type AgentConversation, type UseAgentOptions } from '../src/react/use-agent.ts';
