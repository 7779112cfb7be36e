import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SessionState } from 'genkit/beta';
import { AgentInitError, invalidArgument } from '../../errors.ts';
import { canonicalJson } from '../../json/value.ts';

/** A secret of at least 16 bytes. */
export type SigningKey = string | Uint8Array;

type Signed = SessionState & { signature?: unknown };

/** Signs the states that an agent sends out, and verifies them when they return. */
export class StateSigner {
  readonly #agentName: string;
  readonly #keys: readonly SigningKey[];

  /** @param keys The first key signs; signatures of all keys are accepted, so that keys can be rotated. */
  constructor(agentName: string, keys: SigningKey | readonly SigningKey[]) {
    this.#agentName = agentName;
    this.#keys = Array.isArray(keys) ? (keys as readonly SigningKey[]) : [keys as SigningKey];
    const isKey = (key: SigningKey) =>
      (typeof key === 'string' || key instanceof Uint8Array) && Buffer.byteLength(key) >= 16;
    if (this.#keys.length === 0 || !this.#keys.every(isKey)) {
      throw invalidArgument(
        `Agent '${agentName}': signState needs a key, or a list of keys, of at least 16 bytes each.`,
      );
    }
  }

  sign(state: SessionState): SessionState {
    const { signature: _old, ...bare } = state as Signed;
    const signed: Signed = { ...bare, signature: this.#hmac(bare, this.#keys[0]!).toString('base64url') };
    return signed;
  }

  /** @throws AgentInitError `INVALID_ARGUMENT` for a state that this agent did not issue, or that was changed since. */
  verify(state: SessionState): void {
    const { signature, ...bare } = state as Signed;
    const given = Buffer.from(typeof signature === 'string' ? signature : '', 'base64url');
    const isOurs = this.#keys.some((key) => {
      const expected = this.#hmac(bare, key);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    if (!isOurs) {
      throw new AgentInitError({
        status: 'INVALID_ARGUMENT',
        message: `The 'state' was not issued by agent '${this.#agentName}', or was changed since. Send it back unchanged.`,
      });
    }
  }

  #hmac(state: SessionState, key: SigningKey): Buffer {
    // Includes the agent's name, because another agent may have the same key.
    const text = canonicalJson([this.#agentName, state]);
    return createHmac('sha256', key).update(text).digest();
  }
}
