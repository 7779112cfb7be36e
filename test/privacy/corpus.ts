/** Texts with values that a rule has to find, and texts that only look like them. Made from a seed; no value belongs to a person. */
import { generateKeyPairSync } from 'node:crypto';
import type { PiiKind } from 'genkitx-agents/privacy';
import { Random } from '../support/random.ts';

export interface Sample {
  readonly text: string;
  /** The value, as it stands in the text; none in a look-alike. */
  readonly planted?: { readonly kind: PiiKind; readonly value: string };
}

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const DIGITS = '0123456789';
const HEX = '0123456789abcdef';
const LETTERS = LOWER + LOWER.toUpperCase();
const ALPHANUMERIC = LETTERS + DIGITS;

/** Sentences around a value, in several languages and with typical neighbors. */
const FRAMES = [
  'Please use {} from now on.',
  'It is {}.',
  'It is {}, I think',
  '({})',
  '"{}"',
  'Here you go: {}!',
  'is it {}?',
  '- {}',
  '<b>{}</b>',
  '| 7 | {} | ok |',
  'value={}',
  'Bitte {} verwenden, danke.',
  'Ich heiße Jörg; {} – reicht das?',
  'Voici : « {} », merci.',
  'Aquí está {}; gracias.',
  'Ecco {}. Grazie!',
  'Це {}, дякую.',
  'これは{}です。',
  '我的是{}，谢谢。',
  'هذا {} شكرا',
  'first line\n{}\nlast line',
  '`{}`',
  '👍 {} 👍',
  '{}',
];

class Maker {
  readonly random: Random;
  constructor(seed: number) {
    this.random = new Random(seed);
  }
  chars(alphabet: string, count: number): string {
    return Array.from({ length: count }, () => alphabet[this.random.below(alphabet.length)]).join('');
  }
  int(from: number, to: number): number {
    return from + this.random.below(to - from + 1);
  }
  pad(from: number, to: number): string {
    return String(this.int(from, to)).padStart(2, '0');
  }
  pick<T>(items: readonly T[]): T {
    return this.random.pick(items);
  }
  digits(pattern: string): string {
    return pattern.replaceAll('#', () => this.chars(DIGITS, 1)).replaceAll('N', () => this.chars('23456789', 1));
  }
}

function luhnDigit(digits: string): string {
  const sum = Array.from(digits)
    .toReversed()
    .reduce((total, digit, i) => {
      const doubled = Number(digit) * (i % 2 === 0 ? 2 : 1);
      return total + (doubled > 9 ? doubled - 9 : doubled);
    }, 0);
  return String((10 - (sum % 10)) % 10);
}

function card(make: Maker, right: boolean): string {
  const [prefix, length] = make.pick([
    ['4', 16],
    ['51', 16],
    ['55', 16],
    ['2221', 16],
    ['34', 15],
    ['37', 15],
    ['6011', 16],
    ['3528', 16],
    ['36', 14],
  ] as const);
  const body = prefix + make.chars(DIGITS, length - 1 - prefix.length);
  const check = Number(luhnDigit(body));
  const digits = body + (right ? check : (check + make.int(1, 9)) % 10);
  const separator = make.pick(['', '', ' ', '-', '.', '\u00a0']);
  const groups =
    length === 16 ? /(.{4})(.{4})(.{4})(.{4})/ : length === 15 ? /(.{4})(.{6})(.{5})/ : /(.{4})(.{6})(.{4})/;
  return groups.exec(digits)!.slice(1).join(separator);
}

/** The national part of account numbers: A a letter, # a digit, C a digit or a letter. */
const ACCOUNTS: Record<string, string> = {
  DE: '##################',
  GB: 'AAAA##############',
  FR: '##########CCCCCCCCCCC##',
  ES: '####################',
  IT: 'A##########CCCCCCCCCCCC',
  NL: 'AAAA##########',
  CH: '#####CCCCCCCCCCCC',
  PL: '########################',
};

function account(make: Maker, right: boolean): string {
  const country = make.pick(Object.keys(ACCOUNTS));
  const national = ACCOUNTS[country]!.replaceAll(/[A#C]/g, (sign) =>
    make.chars(sign === '#' ? DIGITS : sign === 'A' ? LOWER.toUpperCase() : LOWER.toUpperCase() + DIGITS, 1),
  );
  const numeric = Array.from(`${national}${country}00`, (sign) => parseInt(sign, 36)).join('');
  const check = 98n - (BigInt(numeric) % 97n);
  const written = String(right ? check : ((check + BigInt(make.int(1, 90))) % 97n) + 2n).padStart(2, '0');
  const whole = country + written + national;
  const form = make.pick(['', ' ', ' ', '-', 'lower'] as const);
  if (form === 'lower') return whole.toLowerCase();
  return form === '' ? whole : whole.match(/.{1,4}/g)!.join(form);
}

/** Numbers that the countries give out, in the ways that they are written there. */
const PHONES: readonly (readonly string[])[] = [
  ['+1 415-555-2###', '(415) 555-2###', '415-555-2###', '415.555.2###', '+1 (212) 736-5###', '1-800-356-9###'],
  ['+44 20 7946 0###', '020 7946 0###', '07911 123###', '+447911123###', '(020) 7946 0###', '+44 (0)20 7946 0###'],
  [
    '+49 30 9018####',
    '030 9018####',
    '030/9018####',
    '0151 2345####',
    '+49 (0) 151 2345####',
    '0049 151 2345####',
    '089-1234####',
  ],
  ['+33 6 12 34 ## ##', '06 12 34 ## ##', '06.12.34.##.##', '+336123456##', '01 42 68 ## ##'],
  ['+34 612 34 ## ##', '612 34 ## ##', '612 345 ###', '+34612345###', '912 34 ## ##'],
  ['+39 333 123 4###', '333 123 4###', '06 6982 ####', '+39 06 6982 ####'],
  ['+91 98765 4####', '98765 4####', '+91-98765-4####', '09876 54####'],
  ['+81 90-1234-5###', '090-1234-5###', '03-1234-5###', '+81 3 1234 5###'],
];

const MONTHS = {
  en: ['January', 'March', 'May', 'Oct', 'December'],
  de: ['Januar', 'März', 'Mai', 'Oktober'],
  fr: ['janvier', 'mars', 'août', 'décembre'],
  es: ['enero', 'marzo', 'agosto'],
};

function birth(make: Maker): { text: string; value: string } {
  const day = make.pad(1, 28);
  const month = make.pad(1, 12);
  const year = make.int(1930, 2012);
  const numeric = make.pick([`${year}-${month}-${day}`, `${day}.${month}.${year}`, `${day}/${month}/${year}`]);
  const [frame, value] = make.pick([
    ['Date of birth: {}', numeric],
    ['DOB {}', `${month}/${day}/${year}`],
    ['D.O.B.: {} (verified)', `${month}/${day}/${String(year).slice(2)}`],
    ['I was born on {} in Leeds.', `${make.pick(MONTHS.en)} ${Number(day)}, ${year}`],
    ['I was born {}.', `${Number(day)} ${make.pick(MONTHS.en)} ${year}`],
    ['My birthday is {}', numeric],
    ['Geburtsdatum: {}', `${day}.${month}.${year}`],
    ['geboren am {} in Köln', `${Number(day)}. ${make.pick(MONTHS.de)} ${year}`],
    ['Ich bin am {} geboren.', `${day}.${month}.${year}`],
    ['geb. {}', `${day}.${month}.${year}`],
    ['Date de naissance : {}', `${day}/${month}/${year}`],
    ['Née le {} à Lyon', `${Number(day)} ${make.pick(MONTHS.fr)} ${year}`],
    ['Fecha de nacimiento: {}', `${Number(day)} de ${make.pick(MONTHS.es)} de ${year}`],
    ['Data di nascita {}', `${day}/${month}/${year}`],
    ['Geboortedatum: {}', `${day}-${month}-${year}`],
    ['дата рождения: {}', `${day}.${month}.${year}`],
    ['生年月日：{}', `${year}年${Number(month)}月${Number(day)}日`],
    ['{"dateOfBirth":"{}"}', `${year}-${month}-${day}`],
    ['{"birth_date": "{}", "city": "Rome"}', `${year}-${month}-${day}`],
  ] as const);
  return { text: frame.replace('{}', () => value), value };
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

const PRIVATE_KEYS = [
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }),
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }),
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' }),
].map((pem) => pem.toString().trim());

const VALUES: Record<Exclude<PiiKind, 'date-of-birth'>, (make: Maker) => string> = {
  email: (make) => {
    const name = make.chars(LOWER, make.int(2, 9));
    const local = make.pick([
      name,
      `${name}.smith`,
      `${name}+tag`,
      `${name}_${make.int(1, 99)}`,
      `o'${name}`,
      `J-${name}`,
      'jörg',
    ]);
    const host = make.pick([
      'example.com',
      'mail.example.co.uk',
      'firma-ag.de',
      'exämple.fr',
      'x.io',
      'uni.example.museum',
      'EXAMPLE.ORG',
    ]);
    return `${local}@${host}`;
  },
  phone: (make) => make.digits(make.pick(make.pick(PHONES))),
  'credit-card': (make) => card(make, true),
  iban: (make) => account(make, true),
  'us-ssn': (make) =>
    `${String(make.pick([make.int(1, 665), make.int(667, 899)])).padStart(3, '0')}-${make.pad(1, 99)}-${String(make.int(1, 9999)).padStart(4, '0')}`,
  'ip-address': (make) =>
    make.pick([
      () => [make.int(11, 223), make.int(0, 255), make.int(0, 255), make.int(1, 254)].join('.'),
      () => `2001:db8:${make.chars(HEX, 4)}::${make.chars('123456789abcdef', 2)}`,
      () => `fe80::${make.chars('123456789', 4)}:${make.chars(HEX, 4)}:fe${make.chars(HEX, 2)}:1`,
      () => Array.from({ length: 8 }, () => make.chars('123456789abcdef', 4)).join(':'),
    ])(),
  'api-key': (make) =>
    make.pick([
      () => `AKIA${make.chars('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16)}`,
      () => `AIza${make.chars(ALPHANUMERIC + '-_', 35)}`,
      () => `ghp_${make.chars(ALPHANUMERIC, 36)}`,
      () => `github_pat_${make.chars(ALPHANUMERIC, 22)}_${make.chars(ALPHANUMERIC, 59)}`,
      () => `xoxb-${make.chars(DIGITS, 12)}-${make.chars(DIGITS, 12)}-${make.chars(ALPHANUMERIC, 24)}`,
      () => `sk_live_${make.chars(ALPHANUMERIC, 24)}`,
      () => `sk-proj-${make.chars(ALPHANUMERIC, 48)}`,
      () => `sk-${make.chars(ALPHANUMERIC, 48)}`,
      () => `sk-ant-api03-${make.chars(ALPHANUMERIC, 93)}AA`,
      () => `npm_${make.chars(ALPHANUMERIC, 36)}`,
      () => `glpat-${make.chars(ALPHANUMERIC, 20)}`,
      () => `SG.${make.chars(ALPHANUMERIC, 22)}.${make.chars(ALPHANUMERIC, 43)}`,
      () => `hf_${make.chars(LETTERS, 34)}`,
    ])(),
  jwt: (make) =>
    [
      base64url({ alg: make.pick(['HS256', 'RS256', 'ES256']), typ: 'JWT' }),
      base64url({ sub: make.chars(DIGITS, 10), iat: make.int(1e9, 2e9) }),
      make.chars(ALPHANUMERIC, 43),
    ].join('.'),
  'private-key': (make) => make.pick(PRIVATE_KEYS),
  'password-in-url': (make) => make.chars(ALPHANUMERIC + '!*$-_.', make.int(6, 20)) + make.chars(ALPHANUMERIC, 1),
};

const URLS = [
  'postgres://app:{}@db.internal:5432/main',
  'https://anna:{}@example.com/path?x=1',
  'redis://:{}@cache',
  'https://example.com/login?user=anna&password={}',
];

/** Values of a kind, each in a text of its own. */
export function samplesOf(kind: PiiKind, count: number, seed: number): Sample[] {
  const make = new Maker(seed);
  return Array.from({ length: count }, () => {
    if (kind === 'date-of-birth') {
      const { text, value } = birth(make);
      return { text, planted: { kind, value } };
    }
    const value = VALUES[kind](make);
    const written = kind === 'password-in-url' ? make.pick(URLS).replace('{}', () => value) : value;
    // Letters next to a local part in the same alphabet belong to it.
    const frame = make.pick(FRAMES);
    return { text: frame.replace('{}', () => written), planted: { kind, value } };
  });
}

const LOOK_ALIKES: readonly ((make: Maker) => string)[] = [
  // Wrong check digits.
  (make) => card(make, false),
  (make) => account(make, false),
  (make) =>
    `${make.pick(['000', '666', '9' + make.chars(DIGITS, 2)])}-${make.pad(1, 99)}-${make.chars('123456789', 4)}`,
  // Numbers of orders, invoices, tickets, parcels, parts.
  (make) => `Order #${make.chars(DIGITS, make.int(6, 12))}`,
  (make) => `order 20${make.chars(DIGITS, 2)}-${make.chars(DIGITS, 6)}`,
  (make) => `INV-${make.int(2015, 2026)}-${make.chars(DIGITS, 5)}`,
  (make) => `Ticket ${make.chars(LOWER.toUpperCase(), 3)}-${make.chars(DIGITS, 5)}`,
  (make) => `1Z${make.chars(ALPHANUMERIC.toUpperCase(), 16)}`,
  (make) =>
    `part ${make.chars(LOWER.toUpperCase(), 2)}-${make.chars(DIGITS, 3)}-${make.chars(DIGITS, 2)}-${make.chars(DIGITS, 4)}`,
  (make) =>
    `P/N ${make.chars(DIGITS, 4)}-${make.chars(LOWER.toUpperCase(), 2)}${make.chars(DIGITS, 4)}/${make.chars(DIGITS, 2)}`,
  (make) => `ISBN 978-3-${make.chars(DIGITS, 2)}-${make.chars(DIGITS, 6)}-${make.chars(DIGITS, 1)}`,
  (make) => `EAN ${make.chars('123456789', 1)}${make.chars(DIGITS, 12)}`,
  (make) => `SKU ${make.chars(DIGITS, 3)}.${make.chars(DIGITS, 3)}.${make.chars(DIGITS, 2)}`,
  // Versions, hashes, ids.
  (make) => `v${make.int(0, 20)}.${make.int(0, 40)}.${make.int(0, 99)}`,
  (make) => `version ${make.int(1, 20)}.${make.int(0, 40)}.${make.int(0, 99)}.${make.int(0, 99)}`,
  (make) => `Chrome/${make.int(90, 140)}.0.${make.int(1000, 9999)}.${make.int(10, 200)}`,
  (make) => `1.3.6.1.4.1.${make.int(100, 99999)}.${make.int(1, 9)}`,
  (make) => `commit ${make.chars(HEX, 40)}`,
  (make) => `sha256:${make.chars(HEX, 64)}`,
  (make) => [8, 4, 4, 4, 12].map((length) => make.chars(HEX, length)).join('-'),
  (make) => make.chars(ALPHANUMERIC, 20),
  (make) => Array.from({ length: 6 }, () => make.chars(HEX, 2)).join(':'),
  (make) => `sk-learn-${make.chars(LOWER, 6)}`,
  (make) => `pat-${Array.from({ length: 6 }, () => make.chars(LOWER, 6)).join('-')}`,
  (make) => `eyJ${make.chars(ALPHANUMERIC, 20)}`,
  // Dates and times.
  (make) => `${make.int(1990, 2026)}-${make.pad(1, 12)}-${make.pad(1, 28)}`,
  (make) => `${make.pad(1, 28)}.${make.pad(1, 12)}.${make.int(1990, 2026)}`,
  (make) =>
    `${make.int(2015, 2026)}-${make.pad(1, 12)}-${make.pad(1, 28)}T${make.pad(0, 23)}:${make.pad(0, 59)}:${make.pad(0, 59)}.${make.chars(DIGITS, 3)}Z`,
  (make) => `${make.pad(0, 23)}:${make.pad(0, 59)}:${make.pad(0, 59)}`,
  (make) => `due on ${make.pad(1, 28)}/${make.pad(1, 12)}/${make.int(2020, 2026)}`,
  (make) => String(make.int(1_500_000_000_000, 1_800_000_000_000)),
  (make) =>
    `${make.int(10, 12)}:00-${make.int(13, 18)}:30 on ${make.pick(MONTHS.en)} ${make.int(1, 28)}, ${make.int(2020, 2026)}`,
  // Coordinates, sums, measures.
  (make) => `${make.int(-89, 89)}.${make.chars(DIGITS, 6)}, ${make.int(-179, 179)}.${make.chars(DIGITS, 6)}`,
  (make) => `+${make.int(10, 89)}.${make.chars(DIGITS, 4)}-0${make.int(10, 89)}.${make.chars(DIGITS, 4)}/`,
  (make) => `0.${make.chars(DIGITS, 16)}`,
  (make) => `$${make.int(1, 9)},${make.chars(DIGITS, 3)},${make.chars(DIGITS, 3)}.${make.chars(DIGITS, 2)}`,
  (make) => `${make.int(1, 999)} ${make.chars(DIGITS, 3)} ${make.chars(DIGITS, 3)} km`,
  (make) => `${make.int(100, 999)} x ${make.int(100, 999)} x ${make.int(1000, 9999)} mm`,
  // Words with an @, URLs, code.
  (make) => `@${make.chars(LOWER, 8)}`,
  (make) => `${make.chars(LOWER, 5)}@${make.int(1, 9)}.${make.int(0, 9)}.${make.int(0, 9)}`,
  (make) => `@${make.chars(LOWER, 5)}/${make.chars(LOWER, 6)}@^${make.int(1, 9)}.0.0`,
  () => 'icon@2x.png',
  (make) => `git@github.com:${make.chars(LOWER, 6)}/${make.chars(LOWER, 6)}.git`,
  (make) => `https://example.com:${make.int(1024, 9999)}/${make.chars(LOWER, 6)}?id=${make.chars(DIGITS, 9)}`,
  (make) => `postgres://app:\${PASSWORD}@db/${make.chars(LOWER, 5)}`,
  (make) => `std::${make.chars(LOWER, 6)}::${make.chars(LOWER, 4)}`,
  () =>
    '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----',
];

/** Texts without any value. */
export function lookAlikes(count: number, seed: number): Sample[] {
  const make = new Maker(seed);
  return Array.from({ length: count }, (_, i) => ({
    text: make.pick(FRAMES).replace('{}', () => LOOK_ALIKES[i % LOOK_ALIKES.length]!(make)),
  }));
}
