import { GenkitError } from 'genkit';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { envelope, localKeys, type KeyOwner, type KeyStore, type WrappingKeys } from 'genkitx-agents/privacy';
import { markedAudience } from '../../../src/errors.ts';
import { keyStoreOf, secret } from './support.ts';

const CHAT: KeyOwner = { tenant: 'global', kind: 'session', id: 'chat' };

/** Local keys, and how often they were used. */
function countingKeys(): { keys: WrappingKeys; counts: { wrap: number; unwrap: number } } {
  const keys = localKeys(secret('a'));
  const counts = { wrap: 0, unwrap: 0 };
  return {
    counts,
    keys: {
      currentId: keys.currentId,
      wrap: (...args) => {
        counts.wrap++;
        return keys.wrap(...args);
      },
      unwrap: (...args) => {
        counts.unwrap++;
        return keys.unwrap(...args);
      },
    },
  };
}

describe('localKeys', () => {
  it('refuses secrets that are too short, no secret, and other values', () => {
    for (const wrong of ['x'.repeat(31), Buffer.alloc(31), [], ['x'.repeat(32), 'short'], undefined, 7, [7]]) {
      expect(() => localKeys(wrong as never), String(wrong)).toThrow(/localKeys: .*secret/);
    }
  });

  it('names a secret by its hash, the same in every process', () => {
    const { currentId } = localKeys(secret('a'));
    expect(currentId).toMatch(/^[0-9a-f]{16}$/);
    expect(localKeys([Buffer.from(secret('a')), secret('b')]).currentId).toBe(currentId);
    expect(localKeys(secret('b')).currentId).not.toBe(currentId);
  });
});

describe('envelope', () => {
  it('refuses missing keys, and unknown options', () => {
    expect(() => envelope({} as never)).toThrow('envelope: keys is missing');
    expect(() => envelope(undefined as never)).toThrow('envelope: keys is missing');
    expect(() => envelope({ key: localKeys(secret('a')) } as never)).toThrow("did you mean 'keys'");
  });

  it('creates one data key for each owner, and unwraps it once: the last used keys stay in memory', async () => {
    const writer = countingKeys();
    const one = envelope({ keys: writer.keys });
    const sealed: Buffer[] = [];
    for (let at = 0; at < 20; at++)
      sealed.push((await one.cipher(CHAT)).seal(Buffer.from(`text ${at}`), `place ${at}`));
    expect(writer.counts).toEqual({ wrap: 1, unwrap: 0 });

    const reader = countingKeys();
    const two = envelope({ keys: reader.keys });
    const texts = await Promise.all(sealed.map((bytes, at) => two.open(bytes, CHAT, `place ${at}`)));
    expect(texts.map(String)).toEqual(sealed.map((_, at) => `text ${at}`));
    // New data is under the key that it has read.
    expect((await two.cipher(CHAT)).keyTag).toBe((await one.cipher(CHAT)).keyTag);
    expect(reader.counts).toEqual({ wrap: 0, unwrap: 1 });

    for (let at = 0; at < 5000; at++) await two.cipher({ ...CHAT, id: `other ${at}` });
    await two.open(sealed[0]!, CHAT, 'place 0');
    expect(reader.counts).toEqual({ wrap: 5000, unwrap: 2 });
  });

  it('opens sealed data for its owner, place and key only', async () => {
    const one = envelope({ keys: localKeys(secret('a')) });
    const sealed = (await one.cipher(CHAT)).seal(Buffer.from('text'), 'place');
    expect(String(await one.open(sealed, CHAT, 'place'))).toBe('text');
    for (const owner of [
      { ...CHAT, tenant: 'other' },
      { ...CHAT, id: 'other' },
      { ...CHAT, kind: 'snapshot' as const },
    ]) {
      await expect(one.open(sealed, owner, 'place'), JSON.stringify(owner)).rejects.toThrow();
      // Not even when its own key is known.
      await one.cipher(owner);
      await expect(one.open(sealed, owner, 'place'), JSON.stringify(owner)).rejects.toThrow();
    }
    await expect(one.open(sealed, CHAT, 'another place')).rejects.toThrow();
    const other = envelope({ keys: localKeys(secret('b')) });
    const refusal: unknown = await other.open(sealed, CHAT, 'place').catch((error: unknown) => error);
    expect(refusal).toMatchObject({ status: 'FAILED_PRECONDITION' });
    // A client over HTTP learns neither the key nor that there is one.
    expect(markedAudience(refusal)).toBe('operator');
  });

  it('tries again after keys that could not be reached', async () => {
    const { keys } = countingKeys();
    let failures = 2;
    const flaky: WrappingKeys = {
      ...keys,
      wrap: async (...args) => (failures-- > 0 ? Promise.reject(new Error('away')) : keys.wrap(...args)),
    };
    const one = envelope({ keys: flaky });
    const refused = { status: 'UNAVAILABLE', message: expect.stringContaining('wrapping key') as string };
    await expect(one.cipher(CHAT)).rejects.toMatchObject({ ...refused, cause: new Error('away') });
    await expect(one.cipher(CHAT)).rejects.toMatchObject(refused);
    expect((await one.cipher(CHAT)).keyTag).toMatch(/^[0-9a-f]{16}$/);
  });

  it.each(['wrap', 'unwrap', 'read', 'write', 'delete'] as const)(
    'is UNAVAILABLE when %s does not answer, and asks again the next time',
    async (method) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(() => void vi.useRealTimers());
      let hangs = false;
      const mayHang = <T extends object>(target: T): T =>
        new Proxy(target, {
          get: (inner, name) =>
            hangs && name === method ? () => new Promise(() => {}) : (inner[name as keyof T] as unknown),
        });
      const keyStore = mayHang<KeyStore>(keyStoreOf(new Map()));
      const open = () => envelope({ keys: mayHang(localKeys(secret('a'))), keyStore });
      const sealed = (await open().cipher(CHAT)).seal(Buffer.from('text'), 'place');
      const one = open();
      const work = async () => {
        if (method === 'delete') return one.forget(CHAT);
        if (method === 'read' || method === 'unwrap') return one.open(sealed, CHAT, 'place');
        return one.cipher(CHAT);
      };
      hangs = true;
      const refusal = work().catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(5000);
      expect(await refusal).toMatchObject({
        status: 'UNAVAILABLE',
        message: expect.stringContaining(`${method} failed (no answer within 5000 ms)`) as string,
        cause: new Error('no answer within 5000 ms'),
      });
      hangs = false;
      await work();
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('keeps a GenkitError of the keys, takes DATA_LOSS of unwrap for damage and other errors for an outage', async () => {
    const { keys } = countingKeys();
    const sealed = (await envelope({ keys }).cipher(CHAT)).seal(Buffer.from('text'), 'place');
    const openWith = async (error: Error): Promise<unknown> => {
      const unwrap = async () => {
        throw error;
      };
      const opening = envelope({ keys: { ...keys, unwrap } }).open(sealed, CHAT, 'place');
      return opening.catch((thrown: unknown) => thrown);
    };
    const refusal = new GenkitError({ status: 'PERMISSION_DENIED', message: 'no' });
    expect(await openWith(refusal)).toBe(refusal);
    expect(await openWith(new Error('away'))).toMatchObject({ status: 'UNAVAILABLE', cause: new Error('away') });
    // Stores take an error that is not a GenkitError for damage.
    const damage = await openWith(new GenkitError({ status: 'DATA_LOSS', message: 'cut' }));
    expect(damage).not.toBeInstanceOf(GenkitError);
    const ofOther = envelope({ keys }).open(sealed, { ...CHAT, id: 'other' }, 'place');
    expect(await ofOther.catch((thrown: unknown) => thrown)).not.toBeInstanceOf(GenkitError);
  });

  it('encrypts equal texts differently, and names them equally under one key only', async () => {
    const one = envelope({ keys: localKeys(secret('a')) });
    const [cipher, other] = [await one.cipher(CHAT), await one.cipher({ ...CHAT, id: 'other' })];
    expect(cipher.seal(Buffer.from('text'), 'place')).not.toEqual(cipher.seal(Buffer.from('text'), 'place'));
    expect(cipher.nameOf('text')).toBe(cipher.nameOf('text'));
    expect(cipher.nameOf('text')).not.toBe(other.nameOf('text'));
  });
});
