import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Browsers that may be open at once; the one that came first is asked to open the inspector anew. */
const MOST_COOKIES = 100;
/** Addresses that may wait to be opened. */
const MOST_TOKENS = 10;

/** One-time tokens, and the cookies that they become. */
export class Keys {
  /** Cookies know hosts but no ports: the name keeps the cookies of two inspectors apart. */
  readonly #cookieName = `inspector-${randomBytes(6).toString('hex')}`;
  readonly #path: string;
  #tokens: Buffer[] = [];
  #cookies: Buffer[] = [];

  /** @param path Where browsers send the cookie. */
  constructor(path: string) {
    this.#path = path;
  }

  /** A new token, for one use. */
  mint(): string {
    const token = randomBytes(32).toString('base64url');
    this.#tokens = [...this.#tokens, hashOf(token)].slice(-MOST_TOKENS);
    return token;
  }

  /** Uses a token up: the `set-cookie` header that it becomes; `undefined` when it is none, or was used. */
  redeem(token: string): string | undefined {
    const hash = hashOf(token);
    const left = this.#tokens.filter((one) => !timingSafeEqual(one, hash));
    if (left.length === this.#tokens.length) return undefined;
    this.#tokens = left;
    const cookie = randomBytes(32).toString('base64url');
    this.#cookies = [...this.#cookies, hashOf(cookie)].slice(-MOST_COOKIES);
    return `${this.#cookieName}=${cookie}; Path=${this.#path}; HttpOnly; SameSite=Strict`;
  }

  /** Whether a `cookie` header has one of these cookies. */
  admits(header: string | null): boolean {
    const values = (header ?? '').split(';').flatMap((pair) => {
      const [name, value] = pair.trim().split('=');
      return name === this.#cookieName && value !== undefined ? [hashOf(value)] : [];
    });
    return values.some((value) => this.#cookies.some((cookie) => timingSafeEqual(cookie, value)));
  }
}

/** Values of equal length, which can be compared in constant time. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
