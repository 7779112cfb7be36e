import { useState } from 'react';
import { ArtifactsPanel } from './components/artifacts-panel.tsx';
import { Chat } from './components/chat.tsx';
import { Header } from './components/header.tsx';
import { OfflineNotice } from './components/offline-notice.tsx';
import { SessionList } from './components/session-list.tsx';
import { StatePanel } from './components/state-panel.tsx';
import { TabBar, type Tab } from './components/tab-bar.tsx';
import { TreePanel } from './components/tree-panel.tsx';
import { withArtifact } from './conversation-state.ts';
import { usePlace, type Place } from './place.ts';
import { useConversation } from './use-conversation.ts';
import { useServer } from './use-server.ts';
import { useSessions } from './use-sessions.ts';

export function App() {
  const server = useServer();
  const [place, go] = usePlace();
  const conversation = useConversation(place, go, server.connection);
  const { nodes, path, shown, live } = conversation;
  const sessions = useSessions(`${server.connection} ${nodes.length} ${shown?.snapshotId}`);
  const [tab, setTab] = useState<Tab>('chat');

  const busy = live !== undefined;
  const open = (next: Place) => {
    go(next);
    setTab('chat');
  };
  const showSnapshot = (snapshotId: string) => open({ sessionId: place.sessionId, snapshotId });
  const artifacts = (live?.artifacts ?? []).reduce(withArtifact, shown?.state?.artifacts ?? []);

  return (
    <div className="app" data-tab={tab}>
      <Header server={server} />
      <TabBar tab={tab} onChange={setTab} />
      {server.online === false && <OfflineNotice />}
      <SessionList sessions={sessions} current={place.sessionId} disabled={busy} onOpen={open} />
      <Chat conversation={conversation} online={server.online !== false} onGoBack={showSnapshot} />
      <aside className="side" aria-label="About this conversation">
        <TreePanel nodes={nodes} path={path} disabled={busy} onSelect={showSnapshot} />
        <StatePanel state={live?.custom ?? shown?.state?.custom} />
        <ArtifactsPanel artifacts={artifacts} />
      </aside>
    </div>
  );
}
