/** Pages of the tests, chosen by the address: `?page=agent&session=s` and `?page=chat&session=s`; with `&outputs` the user gives the outputs of tools. */
import { useChat } from '@ai-sdk/react';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type ChatTransport,
  type UIMessage,
} from 'ai';
import { remoteAgent } from 'genkitx-agents/client';
import { agentTransport, chatMessagesOf, useAgent } from 'genkitx-agents/react';
import { StrictMode, useEffect, useState, version } from 'react';
import { createRoot } from 'react-dom/client';

/** The members that the tests call and read. */
export interface TestWindow {
  version: string;
  agent: ReturnType<typeof useAgent>;
  /** Gives the hook a snapshot to show. */
  show: (snapshotId: string | undefined) => void;
  /** Names the user of the browser. */
  signIn: (user: string) => void;
  chat: ReturnType<typeof useChat>;
  /** Each text of the last message, as it was shown. */
  seen: string[];
  /** Mounts and unmounts a conversation this number of times. */
  mountOften: (times: number) => Promise<void>;
}

const page = window as unknown as TestWindow;
const query = new URLSearchParams(location.search);
const sessionId = query.get('session') ?? undefined;
const url = '/api/teller';
const agent = remoteAgent({ url, reconnect: { delayMs: 0 } });
page.version = version;
page.seen = [];

function AgentPage({ session = sessionId }: { session?: string }) {
  const [snapshotId, show] = useState<string>();
  const [storageKey, setStorageKey] = useState<string>();
  const options = { sessionId: session, snapshotId, storageKey };
  const conversation = useAgent({ agent: query.has('url') ? url : agent, ...options });
  const { messages, status, reconnecting } = conversation;
  const texts = messages.map(({ role, content }) => `${role}: ${content.map((part) => part.text ?? '').join('')}`);
  useEffect(() => {
    page.agent = conversation;
    page.show = show;
    page.signIn = (user) => setStorageKey(`turns:${user}`);
    const last = texts.at(-1);
    if (last !== undefined && page.seen.at(-1) !== last) page.seen.push(last);
  });
  return (
    <main data-status={status} data-reconnecting={reconnecting}>
      {texts.map((text, index) => (
        <p key={index}>{text}</p>
      ))}
    </main>
  );
}

const waitsFor = () => (query.has('outputs') ? 'output' : 'approval');
const transport: ChatTransport<UIMessage> = agentTransport(agent, { waitsFor });

function ChatPage({ initial }: { initial: UIMessage[] }) {
  const chat = useChat({
    id: sessionId,
    transport,
    messages: initial,
    resume: query.has('resume'),
    sendAutomaticallyWhen: query.has('outputs')
      ? lastAssistantMessageIsCompleteWithToolCalls
      : lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const { messages, status, error } = chat;
  useEffect(() => {
    page.chat = chat;
  });
  return (
    <main data-status={status}>
      {messages.flatMap(({ id, role, parts }) =>
        parts
          .filter(({ type }) => type !== 'step-start')
          .map((part, index) => (
            <p key={id + index}>
              {role}: {part.type === 'text' ? part.text : `${part.type} ${'state' in part ? part.state : ''}`}
            </p>
          )),
      )}
      {error && <p role="alert">{error.message}</p>}
    </main>
  );
}

page.mountOften = async (times) => {
  for (let time = 0; time < times; time++) {
    const root = createRoot(document.createElement('div'));
    await new Promise<void>((mounted) => {
      const Mounted = () => {
        useEffect(mounted, []);
        return <AgentPage session={time % 2 ? sessionId : undefined} />;
      };
      root.render(
        <StrictMode>
          <Mounted />
        </StrictMode>,
      );
    });
    root.unmount();
  }
};

const show = async () => {
  const root = createRoot(document.querySelector('#root')!);
  if (query.get('page') === 'agent') return root.render(<StrictMode children={<AgentPage />} />);
  const snapshot = query.has('load') ? await agent.getSnapshot({ sessionId: sessionId! }) : undefined;
  const initial: UIMessage[] = chatMessagesOf(snapshot, waitsFor);
  root.render(<StrictMode children={<ChatPage initial={initial} />} />);
};
void show();
