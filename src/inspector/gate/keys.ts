import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** How many cookies are valid at once. A further one replaces the oldest, whose browser then needs a new address. */
const MOST_COOKIES = 100;
/** How many unused tokens are valid at once. */
const MOST_TOKENS = 10;

/** One-time tokens, and the cookies for which they are exchanged. */
export class Keys {
  /** A random name, so that the cookies of two inspectors on one host differ: cookies have no ports. */
  readonly #cookieName = `inspector-${randomBytes(6).toString('hex')}`;
  readonly #path: string;
  #tokens: Buffer[] = [];
  #cookies: Buffer[] = [];

  /** @param path The path to which browsers send the cookie. */
  constructor(path: string) {
    this.#path = path;
  }

  /** A new token, for one use. */
  createToken(): string {
    const token = randomBytes(32).toString('base64url');
    this.#tokens = [...this.#tokens, hashOf(token)].slice(-MOST_TOKENS);
    return token;
  }

  /** Exchanges a token for a cookie. Returns the `set-cookie` header; `undefined` for an invalid or used token. */
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

/** Hashes have equal lengths, so they can be compared in constant time. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
