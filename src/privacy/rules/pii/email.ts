import validator from 'validator';
import { patternRule, type Span } from './patterns/pattern-rule.ts';

/** An `@`; the local part before it, quoted or in any alphabet; and a possible domain. */
const ADDRESS =
  /(@|%40)(?<=("[^"\\\n]{1,62}"|[\p{L}\p{N}\p{M}_.%+'~-]{1,64})(?:@|%40))([\p{L}\p{N}\p{M}.-]{0,254}[\p{L}\p{N}])/gu;

/** Text of a language without spaces, where an address in the Latin alphabet follows: 邮箱是anna@… */
const UNSPACED = /^.{0,63}[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}](?=[\p{sc=Latin}\d_.+'-]{1,64}$)/u;
/** Signs that are allowed at the beginning of a local part, but mostly belong to the text before. */
const SIGNS = /^[.%+'~-]+/;

/** E-mail addresses, in all alphabets. */
export const email = patternRule('email', 320, function* (text): Generator<Span> {
  for (const { 1: at, 2: written, 3: after, index } of text.matchAll(ADDRESS)) {
    const local = written!.replace(UNSPACED, '').replace(SIGNS, '');
    const domain = domainOf(local, after!);
    const start = index - local.length;
    const end = index + at!.length + (domain?.length ?? 0);
    if (domain === undefined || isRepository(text, end) || isPassword(text, start)) continue;
    yield { start, end, canonical: `${local}@${domain}`.toLowerCase() };
  }
});

/** The longest beginning of `after` with which the address is valid: text may follow without a space. */
function domainOf(local: string, after: string): string | undefined {
  const labels = after.split('.').slice(0, 10);
  for (; labels.length > 1; labels.pop()) {
    const ending = labels.at(-1)!;
    const latin = /^[a-z\u00c0-\u024f]{2,}/i.exec(ending)?.[0] ?? ending;
    const domain = [...labels.slice(0, -1), latin].join('.');
    if (isAddress(`${local}@${domain}`)) return domain;
  }
  return undefined;
}

function isAddress(address: string): boolean {
  // Names of pictures for screens: logo@2x.png
  return validator.isEmail(address, { allow_utf8_local_part: true }) && !/@\dx\.\w+$/.test(address);
}

/** `git@host:team/project.git` */
function isRepository(text: string, end: number): boolean {
  return /^:[\w.~-]{1,64}\/[\w.-]/.test(text.slice(end, end + 80));
}

/** `https://user:password@host`: the password is a kind of its own, and the host stays. */
function isPassword(text: string, start: number): boolean {
  const before = text.slice(Math.max(0, start - 400), start);
  const authority = before.lastIndexOf('://');
  return authority !== -1 && /^[^\s/?#:]*:[^\s/?#]*$/.test(before.slice(authority + 3));
}
