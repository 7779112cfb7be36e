import { useEffect, useState } from 'react';
import type { ServerHello } from '../../server/api-types.ts';

export interface ServerStatus {
  /** `undefined` until it is known. */
  online?: boolean;
  /** Grows with every connection: what was read from the server is read again when it changes. */
  connection: number;
  hello?: ServerHello;
}

const RETRY_MS = 1_500;

/** Whether the server is there, told by an open stream of events that the browser opens again when it breaks. */
export function useServer(): ServerStatus {
  const [status, setStatus] = useState<ServerStatus>({ connection: 0 });

  useEffect(() => {
    let source: EventSource;
    let timer: number | undefined;
    const connect = () => {
      source = new EventSource('api/events');
      source.addEventListener('message', ({ data }: MessageEvent<string>) => {
        const hello = JSON.parse(data) as ServerHello;
        setStatus(({ connection }) => ({ online: true, connection: connection + 1, hello }));
      });
      source.addEventListener('error', () => {
        setStatus((before) => ({ ...before, online: false }));
        // Some browsers give up when nothing listens on the port.
        if (source.readyState === EventSource.CLOSED) timer = window.setTimeout(connect, RETRY_MS);
      });
    };
    connect();
    return () => {
      window.clearTimeout(timer);
      source.close();
    };
  }, []);

  return status;
}
