/**
 * What stands around the Firebase sample's functions in the cloud, on this machine: an HTTP server that parses bodies, and ends at once on
 * SIGTERM as the functions framework does. What verifies ID tokens fetches Google's public keys: it gets the test's instead.
 */
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import https from 'node:https';
import express from 'express';

const keys = createServer((_request, response) => response.end(process.env['TEST_PUBLIC_KEYS']));
keys.listen(0, '127.0.0.1').unref();
await once(keys, 'listening');
const httpsRequest = https.request.bind(https);
https.request = ((options: RequestOptions, onResponse: (response: IncomingMessage) => void) => {
  if ((options.hostname ?? options.host) !== 'www.googleapis.com') return httpsRequest(options, onResponse);
  const { port } = keys.address() as AddressInfo;
  return httpRequest({ host: '127.0.0.1', port, path: options.path }, onResponse);
}) as typeof https.request;

type Functions = typeof import('../../../samples/firebase/main.ts');
const { agents, recover } = (await import(process.env['TEST_FUNCTIONS']!)) as Functions;
const app = express();
app.use(express.json());
app.use('/agents', (request, response) => void agents(Object.assign(request, { rawBody: Buffer.alloc(0) }), response));
app.post('/recover', (_request, response, next) => {
  Promise.resolve(recover.run({ scheduleTime: new Date().toISOString() })).then(() => response.end(), next);
});
const server = createServer(app).listen(Number(process.env['PORT']), process.env['HOST']);
await once(server, 'listening');
process.on('SIGTERM', () => process.exit(1));
console.log(`The functions' host listens on port ${(server.address() as AddressInfo).port}.`);
