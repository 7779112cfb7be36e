import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SetupError } from '../setup-error.ts';

export interface Address {
  host: string;
  port: number;
}

/** @throws SetupError if the server can't listen on `host` and `port`. */
export async function listen(server: Server, { host, port }: Address): Promise<AddressInfo> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new SetupError(cannotListen(error as NodeJS.ErrnoException, { host, port }));
  }
  return server.address() as AddressInfo;
}

function cannotListen({ code, message }: NodeJS.ErrnoException, { host, port }: Address): string {
  if (code === 'EADDRINUSE') {
    return `Port ${port} on ${host} is in use; stop what runs there, or name another with PORT.`;
  }
  if (code === 'EACCES') return `Port ${port} is reserved for administrators; name one above 1023 with PORT.`;
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL') return `HOST '${host}' is not an address of this machine.`;
  return `Port ${port} on ${host} can't be listened on: ${message}.`;
}
