import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { remoteAgent } from '../client/http/remote-agent.ts';
import type { AgentAPI } from '../client/types.ts';
import { LiveChat } from './live-chat.ts';
import type { SnapshotNode } from './snapshot-tree.ts';
import type { ChatView, LiveChatOptions } from './types.ts';

/** Options of {@link useAgent}. */
export interface UseAgentOptions<State = unknown, Node extends SnapshotNode = SnapshotNode> extends Omit<
  LiveChatOptions<State, Node>,
  'agent'
> {
  /** The agent: the result of `remoteAgent()`, or its URL. */
  agent: AgentAPI<State> | string | URL;
}

/** The result of {@link useAgent}: the view and the actions. The functions stay the same. */
export type AgentConversation<State = unknown, Node extends SnapshotNode = SnapshotNode> = ChatView<State, Node> &
  Pick<LiveChat<State, Node>, 'send' | 'stop' | 'retry' | 'editAndBranch' | 'respond' | 'goTo' | 'refresh' | 'dismiss'>;

interface Held<State, Node extends SnapshotNode> {
  live: LiveChat<State, Node>;
  /** As given. */
  sessionId: string | undefined;
  storageKey: string | undefined;
  url: string | undefined;
  /** The agent, where a URL was given. */
  remote: AgentAPI<State> | undefined;
}

/**
 * A conversation with an agent, for React 18 and 19. Another `sessionId` or `storageKey` shows another conversation; a turn that runs in the
 * earlier one continues. If the server keeps streams (`streamManager`), a running turn is shown when its conversation is opened again, after a
 * reload, and in other tabs; otherwise a turn is shown there when it is saved.
 *
 * @example
 * import { useAgent } from 'genkitx-agents/react';
 * import { createElement } from 'react';
 *
 * export function Chat() {
 *   const { messages, status, send, stop } = useAgent({ agent: '/api/support', sessionId: 'session-1' });
 *   const isRunning = status === 'submitted' || status === 'streaming';
 *   const lines = messages.map(({ content }, index) =>
 *     createElement('p', { key: index }, content.map(({ text }) => text).join('')),
 *   );
 *   const onClick = isRunning ? stop : () => send('Where is my order?');
 *   return createElement('main', null, lines, createElement('button', { onClick }, isRunning ? 'Stop' : 'Ask'));
 * }
 */
export function useAgent<State = unknown, Node extends SnapshotNode = SnapshotNode>(
  options: UseAgentOptions<State, Node>,
): AgentConversation<State, Node> {
  const { agent, sessionId, snapshotId, storageKey } = options;
  const url = typeof agent === 'string' || agent instanceof URL ? String(agent) : undefined;
  const [before, hold] = useState(() => holdFor(options, url));
  let held = before;
  const isSame = before.url === url && before.storageKey === storageKey;
  if (!isSame || before.sessionId !== sessionId) {
    // A conversation that got its id from its first turn stays the same.
    const isNamed = isSame && before.live.getView().sessionId === sessionId;
    held = isNamed ? { ...before, sessionId } : holdFor(options, url);
    hold(held);
  }
  const { live, remote } = held;
  const view = useSyncExternalStore(live.subscribe, live.getView, live.getView);
  useEffect(() => {
    live.options = { ...options, agent: remote ?? (agent as AgentAPI<State>) };
  });
  useEffect(() => live.open(), [live]);
  const shownId = useRef(snapshotId);
  useEffect(() => {
    if (shownId.current !== snapshotId) void live.goTo(snapshotId);
    shownId.current = snapshotId;
  }, [live, snapshotId]);
  return useMemo(() => {
    const { send, stop, retry, editAndBranch, respond, goTo, refresh, dismiss } = live;
    return { ...view, send, stop, retry, editAndBranch, respond, goTo, refresh, dismiss };
  }, [live, view]);
}

function holdFor<State, Node extends SnapshotNode>(
  options: UseAgentOptions<State, Node>,
  url: string | undefined,
): Held<State, Node> {
  const remote = url === undefined ? undefined : remoteAgent<State>({ url });
  const live = new LiveChat<State, Node>({ ...options, agent: remote ?? (options.agent as AgentAPI<State>) });
  return { live, remote, sessionId: options.sessionId, storageKey: options.storageKey, url };
}
