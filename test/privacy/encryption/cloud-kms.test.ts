import { createRequire } from 'node:module';
import { randomBytes } from 'node:crypto';
import {
  Server,
  ServerCredentials,
  credentials,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { GenkitError } from 'genkit';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cloudKms, envelope, type KeyOwner } from 'genkitx-agents/privacy';
import { decrypt, encrypt } from '../../../src/privacy/encryption/aes-gcm.ts';

const CHAT: KeyOwner = { tenant: 'global', kind: 'session', id: 'chat' };
const RING = 'projects/p/locations/l/keyRings/r/cryptoKeys';
const [SESSIONS, OLD] = [`${RING}/sessions`, `${RING}/old`];

type Request = { name: string; plaintext: Buffer; ciphertext: Buffer; additionalAuthenticatedData: Buffer };
type Answer = (call: ServerUnaryCall<Request, unknown>, callback: sendUnaryData<unknown>) => void;

/** Cloud KMS behind its real client, as far as it is used: keys that encrypt, and the errors of the service. */
class KmsServer {
  readonly server = new Server();
  readonly keys = new Map([SESSIONS, OLD].map((name) => [name, randomBytes(32)]));
  requests: string[] = [];
  failure: number | undefined;

  async start(): Promise<KeyManagementServiceClient> {
    const protos = createRequire(import.meta.url)('@google-cloud/kms/build/protos/protos.json') as object;
    const definition = fromJSON(protos, { keepCase: false });
    const service = definition['google.cloud.kms.v1.KeyManagementService'] as never;
    this.server.addService(service, { encrypt: this.#answer('encrypt'), decrypt: this.#answer('decrypt') });
    const port = await new Promise<number>((resolve, reject) => {
      const onBound = (error: Error | null, bound: number): void => (error ? reject(error) : resolve(bound));
      this.server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), onBound);
    });
    const options = { apiEndpoint: '127.0.0.1', port, projectId: 'p', sslCreds: credentials.createInsecure() };
    return new KeyManagementServiceClient(options);
  }

  #answer(method: 'encrypt' | 'decrypt'): Answer {
    return ({ request }, callback) => {
      this.requests.push(`${method} ${request.name}`);
      const key = this.keys.get(request.name);
      if (this.failure !== undefined) return callback({ code: this.failure, message: 'no' });
      if (!key) return callback({ code: status.NOT_FOUND, message: 'no such key' });
      try {
        const associated = request.additionalAuthenticatedData;
        if (method === 'encrypt')
          callback(null, { name: request.name, ciphertext: encrypt(key, request.plaintext, associated) });
        else callback(null, { plaintext: decrypt(key, request.ciphertext, associated) });
      } catch {
        callback({ code: status.INVALID_ARGUMENT, message: 'Decryption failed.' });
      }
    };
  }
}

describe('cloudKms', () => {
  const kms = new KmsServer();
  let client: KeyManagementServiceClient;

  beforeAll(async () => {
    // Else the client looks for a machine of Google's.
    process.env['METADATA_SERVER_DETECTION'] = 'none';
    client = await kms.start();
  });
  beforeEach(() => {
    kms.requests = [];
    kms.failure = undefined;
  });
  afterAll(async () => {
    delete process.env['METADATA_SERVER_DETECTION'];
    await client.close();
    kms.server.forceShutdown();
  });

  it('needs the name of a key', () => {
    for (const wrong of ['', [], undefined])
      expect(() => cloudKms(client, wrong as never)).toThrow('needs the name of a key');
  });

  it('encrypts and decrypts data keys with the real client, one request each, and moves to another key', async () => {
    const before = envelope({ keys: cloudKms(client, OLD) });
    const sealed = (await before.cipher(CHAT)).seal(Buffer.from('text'), 'place');
    const after = envelope({ keys: cloudKms(client, [SESSIONS, OLD]) });
    for (let at = 0; at < 3; at++) expect(String(await after.open(sealed, CHAT, 'place'))).toBe('text');
    const again = (await after.cipher(CHAT)).seal(Buffer.from('more'), 'place');
    expect(String(await envelope({ keys: cloudKms(client, SESSIONS) }).open(again, CHAT, 'place'))).toBe('more');
    expect(kms.requests).toEqual([`encrypt ${OLD}`, `decrypt ${OLD}`, `encrypt ${SESSIONS}`, `decrypt ${SESSIONS}`]);
  });

  it('answers FAILED_PRECONDITION for a key that it was not given, and for one that the process may not use', async () => {
    const sealed = (await envelope({ keys: cloudKms(client, OLD) }).cipher(CHAT)).seal(Buffer.from('text'), 'place');
    const other = envelope({ keys: cloudKms(client, SESSIONS) });
    const refused = { status: 'FAILED_PRECONDITION', message: expect.stringContaining(OLD) as string };
    await expect(other.open(sealed, CHAT, 'place')).rejects.toMatchObject(refused);
    for (const code of [status.NOT_FOUND, status.PERMISSION_DENIED, status.FAILED_PRECONDITION]) {
      kms.failure = code;
      const own = envelope({ keys: cloudKms(client, OLD) });
      await expect(own.open(sealed, CHAT, 'place'), String(code)).rejects.toMatchObject(refused);
      await expect(own.cipher({ ...CHAT, id: 'new' }), String(code)).rejects.toMatchObject(refused);
    }
  });

  it('answers UNAVAILABLE while the service is unavailable, and an error of damage for a data key of another owner', async () => {
    const sealed = (await envelope({ keys: cloudKms(client, OLD) }).cipher(CHAT)).seal(Buffer.from('text'), 'place');
    const own = envelope({ keys: cloudKms(client, OLD) });
    kms.failure = status.INTERNAL;
    await expect(own.open(sealed, CHAT, 'place')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    kms.failure = undefined;
    const ofOther = own.open(sealed, { ...CHAT, id: 'other' }, 'place');
    const damage: unknown = await ofOther.catch((error: unknown) => error);
    expect(damage).not.toBeInstanceOf(GenkitError);
    expect(damage).toMatchObject({ cause: { cause: { code: status.INVALID_ARGUMENT } } });
    expect(String(await own.open(sealed, CHAT, 'place'))).toBe('text');
  });
});
