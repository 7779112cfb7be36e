import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../../support/emulator.ts';
import { emulatorHost } from './database.ts';

/** A connection to the emulator that can be cut, like a network. */
export class Proxy {
  readonly port: number;
  readonly #sockets = new Set<Socket>();
  readonly #answers = new Map<Socket, Socket>();
  #server: Server | undefined;

  private constructor(port: number) {
    this.port = port;
  }

  static async open(): Promise<Proxy> {
    const proxy = new Proxy(await freePort());
    await proxy.restore();
    return proxy;
  }

  /** Requests still get through, answers do not, until the connections are cut. */
  mute(): void {
    for (const [upstream, client] of this.#answers) upstream.unpipe(client);
  }

  /** Closes all connections, and stops listening. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }

  restore(): Promise<void> {
    const [host, port] = emulatorHost().split(':');
    const server = createServer((client) => {
      const upstream = connect(Number(port), host);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket
          .on('error', () => {})
          .on('close', () => {
            this.#sockets.delete(socket);
            this.#answers.delete(socket);
            client.destroy();
            upstream.destroy();
          });
      }
      client.pipe(upstream).pipe(client);
      this.#answers.set(upstream, client);
    });
    this.#server = server;
    return new Promise((resolve) => server.listen(this.port, '127.0.0.1', resolve));
  }
}
