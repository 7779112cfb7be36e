import { useState } from 'react';
import { ArtifactsPanel } from './components/artifacts-panel.tsx';
import { Chat } from './components/chat.tsx';
import { Header } from './components/header.tsx';
import { OfflineNotice } from './components/offline-notice.tsx';
import { SessionList } from './components/session-list.tsx';
import { StatePanel } from './components/state-panel.tsx';
import { TabBar, type Tab } from './components/tab-bar.tsx';
import { TreePanel } from './components/tree-panel.tsx';
import { useConversation } from './hooks/use-conversation.ts';
import { usePlace } from './hooks/use-place.ts';
import { useServer } from './hooks/use-server.ts';
import { useSessions } from './hooks/use-sessions.ts';
import type { Place } from './logic/place.ts';

export function App() {
  const { online, connection, hello, changes } = useServer();
  const [place, go] = usePlace();
  const version = `${connection} ${changes[place.sessionId ?? ''] ?? 0}`;
  const conversation = useConversation({ place, go, version });
  const sessions = useSessions(`${connection} ${JSON.stringify(changes)}`);
  const [tab, setTab] = useState<Tab>('chat');

  const { sessionId, messages, state, artifacts, tree, path, snapshotId } = conversation;
  const open = (next: Place) => {
    go(next);
    setTab('chat');
  };
  const goTo = (id: string) => open({ sessionId: place.sessionId, snapshotId: id, wentBack: true });
  const raw = snapshotId === undefined ? undefined : { sessionId, messages, custom: state, artifacts };

  return (
    <div className="app" data-tab={tab}>
      <Header online={online} hello={hello} />
      <TabBar tab={tab} onChange={setTab} />
      {online === false && <OfflineNotice />}
      <SessionList sessions={sessions} current={place.sessionId} canRename={hello?.canRename === true} onOpen={open} />
      <Chat conversation={conversation} wentBack={place.wentBack === true} online={online !== false} onGoTo={goTo} />
      <aside className="side" aria-label="About this conversation">
        <TreePanel nodes={tree} path={path} onSelect={goTo} />
        <StatePanel state={state} raw={raw} />
        <ArtifactsPanel artifacts={artifacts} />
      </aside>
    </div>
  );
}
