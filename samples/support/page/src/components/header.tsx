import type { ServerStatus } from '../use-server.ts';
import { ModelBadge } from './model-badge.tsx';

export function Header({ server: { online, hello } }: { server: ServerStatus }) {
  return (
    <header className="header">
      <img src="./icon.svg" alt="" width="22" height="22" />
      <h1>Support agent</h1>
      {hello && <ModelBadge model={hello.model} />}
      <span className="connection" data-online={online}>
        {online === undefined ? 'connecting' : online ? 'connected' : 'not connected'}
      </span>
    </header>
  );
}
