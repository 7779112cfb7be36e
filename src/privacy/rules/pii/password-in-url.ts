import { patternRule, type Span } from './patterns/pattern-rule.ts';

/** `scheme://user:password@`, and `?password=`. */
const USER_INFO = /:\/\/[^\s/?#@:"'<>]{0,128}:([^\s/?#"<>]{1,256})@(?=[\w[%*.-])/g;
const PARAMETER =
  /[?&;](?:password|passwd|passphrase|passwort|pwd|pass|access_token|client_secret)=([^\s&;#"'<>]{1,256})/gi;

/** Text in place of a password: stars, `${PASSWORD}`, `{password}`, `$PASSWORD`, `%s`. */
const PLACEHOLDER = /^(?:[*.•x]+|[$%#]?\{.*\}|\[.*\]|\$[A-Z_]+|%[sv]|(?:your[-_]?)?password|redacted)$/;

/** Passwords in URLs and connection strings. The rest of the URL stays. */
export const passwordInUrl = patternRule('password-in-url', 512, function* (text): Generator<Span> {
  for (const [pattern, signs] of [
    [USER_INFO, '@'.length],
    [PARAMETER, 0],
  ] as const) {
    for (const { 0: match, 1: password, index } of text.matchAll(pattern)) {
      const end = index + match.length - signs;
      if (!PLACEHOLDER.test(password!)) yield { start: end - password!.length, end };
    }
  }
});
