/** A proxy that breaks a connection after a given number of bytes of an answer. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  url: string;
  /** The next connection with answers breaks after this number of their bytes, counted from now; later ones do not. */
  cutAfter(bytes: number): void;
  /** Breaks all open connections. */
  cut(): void;
  /** The number of bytes of answers since {@link cutAfter}. */
  carried(): number;
  stop(): Promise<void>;
}

export async function cuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port, pathname } = new URL(target);
  const open = new Set<Socket>();
  let left = Infinity;
  let carried = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    const end = () => {
      client.destroy();
      upstream.destroy();
      open.delete(client);
    };
    open.add(client);
    for (const socket of [client, upstream]) {
      socket.on('error', end).on('close', end).setNoDelay(true);
    }
    client.on('data', (bytes: Buffer) => upstream.write(bytes));
    upstream.on('data', (bytes: Buffer) => {
      carried += bytes.length;
      if (bytes.length <= left) {
        left -= bytes.length;
        client.write(bytes);
        return;
      }
      // Closed in order, so that the bytes so far arrive.
      client.end(bytes.subarray(0, left));
      left = Infinity;
      upstream.destroy();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname.replace(/\/$/, '')}`,
    cutAfter: (bytes) => {
      left = bytes;
      carried = 0;
    },
    cut: () => open.forEach((socket) => socket.destroy()),
    carried: () => carried,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        open.forEach((socket) => socket.destroy());
      }),
  };
}
