import type { ServerHello } from '../../../server/api-types.ts';
import { ModelBadge } from './model-badge.tsx';

interface Props {
  /** `undefined` until it is known. */
  online?: boolean;
  hello?: ServerHello;
}

export function Header({ online, hello }: Props) {
  return (
    <header className="header">
      <img src="./icon.svg" alt="" width="22" height="22" />
      <h1>Support agent</h1>
      {hello && <ModelBadge model={hello.model} />}
      {hello?.customer && <span className="customer">{hello.customer}</span>}
      <span className="connection" data-online={online}>
        {online === undefined ? 'connecting' : online ? 'connected' : 'not connected'}
      </span>
    </header>
  );
}
