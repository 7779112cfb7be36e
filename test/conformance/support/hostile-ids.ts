/** Strings that are ordinary ids here, but have a special meaning in file systems, databases or formats. */

const words = (text: string): string[] => text.trim().split(/[ \n]+/);

const PATHS = words(String.raw`
  . .. ... / // \ ./x ../x ../../x ..\x ..\..\x /x /etc/passwd x/ x/y x/../y x\y C: C:\x C:x \\server\share //server/share
  ~ ~/x ~root file:///etc/passwd ..%2Fx %2e%2e%2fx %2F %5C %00 % %% %zz %25 %252F ..;/x ....//x .../...//
  x.json x.json.json .json x.tmp x.lock .pointers .pointers/x .git .hidden x. x.. index index.json shards snapshots pointers global
  lock session x:stream x::$DATA
`);

const NAMES = words(String.raw`
  CON con PRN AUX NUL nul NUL.txt COM1 LPT1 CLOCK$ desktop.ini Thumbs.db .DS_Store
  __proto__ constructor prototype toString valueOf hasOwnProperty __defineGetter__ then length __name__ __id7__ __x__ (default)
  * ** ? < > | " ' ${'`'} : ; & # $ ! a.b a[0] a,b a=b a&b a?b a#b {} [] () @ ^ + - -- -rf --help =1+1
  null undefined NaN true false 0 -0 00 1e3 Infinity [object_Object] ${'${x}'} $(x) {{x}} '; <script> <!-- \u0000 \x00 \n \\
`);

const UNICODE = words(`
  \u{1F600} \u{10FFFF} 👩‍👩‍👧‍👦 日本語 שלום مرحبا Привет ελλάς ελλάσ
  A a Id ID id iD I i \u0130 \u0131 ß ss SS ẞ \uFB01 fi K \u212A \u00C5 \u212B \u00E9 e\u0301 \u1E69 s\u0323\u0307 s\u0307\u0323
  \uAC00 \u1100\u1161 \u2460 1 \uFF11 \uFF58 x
`);

/** Blanks, control characters, invisible ones, and halves of characters. */
const CHARACTERS = [
  [
    'a b',
    ' a',
    'a ',
    ' a ',
    'x .',
    '\u00A0a',
    'a\u00A0',
    'a\tb',
    'a\nb',
    'a\r\nb',
    "'; DROP TABLE snapshots; --",
    '" OR 1=1',
  ],
  [
    '\u0000',
    'a\u0000',
    '\u0000a',
    'a\u0000b',
    '\u0001',
    '\u001B[31m',
    '\u007F',
    '\u0085',
    '\u2028x',
    '\u202Ex',
    '\uFFFF',
  ],
  ['\u200B', 'a\u200Bb', '\u200D', '\uFEFFa', 'a\uFEFF', '\uD800', '\uDFFF', '\uDC00\uD800', 'a\uD83D', '\uFFFD'],
].flat();

const LENGTHS = [
  [2, 100, 127, 128, 200, 250, 251, 254, 255, 256, 257, 500, 1000, 1023, 1024].map((length) => 'l'.repeat(length)),
  [`${'l'.repeat(1023)}m`, `${'l'.repeat(1023)}M`, `${'.'.repeat(1022)}/x`, '../'.repeat(3), '..\\'.repeat(3)],
  ['\u00E9', '日', '/', '%', '\u0000'].map((character) => character.repeat(1024)),
  ['\u{1F600}'.repeat(512)],
].flat();

/** Different ids. Some are equal after decoding, case folding or Unicode normalization, which no store may do. */
export const HOSTILE_IDS: readonly string[] = [
  ...new Set([...PATHS, ...NAMES, ...UNICODE, ...CHARACTERS, ...LENGTHS].filter((id) => id.trim() !== '')),
];

/** Ids that become equal by case folding, normalization, trimming or path resolution. */
const LOOK_ALIKES = [...words('A a \u00E9 e\u0301 K \u212A fi \uFB01 x /x x. ./x'), 'x ', '\u200Bx'];

/**
 * Returns some of many hostile ids or prefixes, and always those that look alike: a store that confuses two ids is caught only if both are
 * used.
 */
export function hostileOnes(kit: { some<T>(cases: readonly T[]): readonly T[] }, all: readonly string[]): string[] {
  return [...new Set([...LOOK_ALIKES, ...kit.some(all)])];
}

/**
 * Tenant prefixes that must stay separate. None leads out of more than three folders, so that a faulty store writes only inside the test's
 * folder.
 */
export const HOSTILE_PREFIXES: readonly string[] = [
  words(String.raw`
    global Global GLOBAL a A a/b a/../b b .. . ../a ../../a ../../../a a/.. a/. ./a /a a/ a//b / \a a\b ..\a %2e%2e%2fa a%2Fb %61
    a. a.json .pointers global/.pointers global/snapshots snapshots shards __x__ __proto__ constructor CON nul * ?
  `),
  words('\u00E9 e\u0301 \uFB01 fi K \u212A \uFFFD 日本語 \u{1F600}'),
  ['a\u0000', 'a\u0000b', ' a', 'a ', '\uD800', 'l'.repeat(1024), `${'l'.repeat(1023)}m`],
].flat();
