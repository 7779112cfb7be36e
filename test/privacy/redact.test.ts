import fc from 'fast-check';
import { InMemorySessionStore } from 'genkitx-agents';
import { HashNumbering, piiRules, redacting, redactText, redactValue, type PrivacyRule } from 'genkitx-agents/privacy';
import { describe, expect, it } from 'vitest';

const rules = piiRules();
const CARD = '4111 1111 1111 1111';

/** Finds each occurrence of a word. */
function word(text: string, kind = text, options: { delayed?: boolean } = {}): PrivacyRule {
  const find = (inside: string) =>
    [...inside.matchAll(/\w+/g)]
      .filter(([found]) => found === text)
      .map(({ index, 0: found }) => ({ kind, start: index, end: index + found.length }));
  return {
    name: `the ${text}`,
    maxLength: text.length,
    find: options.delayed ? async (inside) => Promise.resolve(find(inside)) : find,
  };
}

/** A rule that returns the same places for any text. */
function places(name: string, ...matches: [start: number, end: number][]): PrivacyRule {
  return { name, maxLength: 9, find: () => matches.map(([start, end]) => ({ kind: name, start, end })) };
}

describe('redactText', () => {
  it('replaces values by placeholders, and returns their places', async () => {
    const { value, findings } = await redactText('Mail anna@example.com or +49 30 901820!', rules);
    expect(value).toBe('Mail [EMAIL_1] or [PHONE_1]!');
    expect(findings).toEqual([
      { kind: 'email', start: 5, end: 21, rule: 'email' },
      { kind: 'phone', start: 25, end: 38, rule: 'phone' },
    ]);
  });

  it('gives the same value the same number, in every spelling', async () => {
    const text = `${CARD}, 5555-5555-5555-4444, 4111111111111111; Anna@example.com anna@example.com`;
    const { value } = await redactText(text, rules);
    expect(value).toBe('[CREDIT_CARD_1], [CREDIT_CARD_2], [CREDIT_CARD_1]; [EMAIL_1] [EMAIL_1]');
  });

  it.each([
    ['telephone numbers', '+49 30 901820, tel. 030 901820, 0049 (30) 90 18 20', '[PHONE_1], tel. [PHONE_1], [PHONE_1]'],
    ['IP addresses', '2001:db8::1 2001:0DB8:0:0:0:0:0:1', '[IP_ADDRESS_1] [IP_ADDRESS_1]'],
    ['an encoded @', 'anna%40example.com anna@example.com', '[EMAIL_1] [EMAIL_1]'],
  ])('gives %s the same number in each of their forms', async (_, text, redacted) => {
    expect((await redactText(text, rules)).value).toBe(redacted);
  });

  it('finds the date of birth that stands after a name in brackets', async () => {
    const { value } = await redactText('Ada Byron (b. 10 Dec 1985), section b. 10 Dec 1985', rules);
    expect(value).toBe('Ada Byron (b. [DATE_OF_BIRTH_1]), section b. 10 Dec 1985');
  });

  it('finds nothing in its own result', async () => {
    const text = `${CARD} anna@example.com 192.168.0.7 born 1985-03-12 https://a:secret1@b.org +49 30 901820`;
    const { value } = await redactText(text, rules);
    expect(await redactText(value, rules)).toEqual({ value, findings: [] });
  });

  it('does not treat other text in brackets as a placeholder', async () => {
    const { value } = await redactText('[AKIAIOSFODNN7EXAMPLE_1] [CARD_4111111111111111]', rules);
    expect(value).not.toMatch(/AKIA|4111/);
  });

  it('waits for rules that are asynchronous', async () => {
    const { value } = await redactText('Anna calls Bob', [
      word('Bob', 'name'),
      word('Anna', 'name', { delayed: true }),
    ]);
    expect(value).toBe('[NAME_1] calls [NAME_2]');
  });

  it('joins matches that overlap: the longest gives the kind, then the first rule, and no part is left', async () => {
    const text = '0123456789';
    const longest = await redactText(text, [places('short', [0, 4]), places('long', [2, 8])]);
    expect(longest).toEqual({ value: '[LONG_1]89', findings: [{ kind: 'long', start: 0, end: 8, rule: 'long' }] });
    const first = await redactText(text, [places('a', [4, 8]), places('b', [2, 6])]);
    expect(first).toEqual({ value: '01[A_1]89', findings: [{ kind: 'a', start: 2, end: 8, rule: 'a' }] });
    const apart = await redactText(text, [places('a', [4, 8]), places('b', [2, 4])]);
    expect(apart.value).toBe('01[B_1][A_1]89');
  });

  it('fails with the error of a rule, and names a rule that returns an invalid match', async () => {
    const broken: PrivacyRule = { name: 'broken', maxLength: 1, find: () => Promise.reject(new Error('no network')) };
    await expect(redactText('x', [broken])).rejects.toThrow('no network');
    await expect(redactText('abc', [places('outside', [1, 4])])).rejects.toThrow("The privacy rule 'outside'");
    await expect(redactText('abc', [places('empty', [1, 1])])).rejects.toThrow("The privacy rule 'empty'");
  });

  it('stops when the signal aborts', async () => {
    await expect(redactText('x', rules, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow('late');
  });

  it('continues with the numbers of an earlier numbering, which holds no value', async () => {
    const secret = 'a secret of 32 bytes, or of more';
    const before = new HashNumbering({ secret });
    await redactText('anna@example.com bob@example.com', rules, { numbering: before });
    const kept = JSON.stringify(before.hashes);
    expect(kept).not.toMatch(/anna|bob|example/);
    const after = new HashNumbering({ secret, hashes: JSON.parse(kept) as Record<string, string[]> });
    const { value } = await redactText('carl@example.com bob@example.com', rules, { numbering: after });
    expect(value).toBe('[EMAIL_3] [EMAIL_2]');
    expect(JSON.stringify(before.hashes)).toBe(kept);
    const other = new HashNumbering({ secret: 'another secret' });
    other.numberOf('email', 'anna@example.com');
    expect(other.hashes['email']![0]).not.toBe(before.hashes['email']![0]);
  });

  it('refuses an empty list of secrets', () => {
    expect(() => new HashNumbering({ secret: [] })).toThrow('needs a secret');
    expect(() => redacting(new InMemorySessionStore(), { rules, secret: [] })).toThrow('needs a secret');
  });

  it.each([
    ['full-width digits', '４１１１ １１１１ １１１１ １１１１'],
    ['Arabic digits', '٤١١١ ١١١١ ١١١١ ١١١١'],
    ['Devanagari digits', '४१११११११११११११११'],
    ['mathematical digits', '𝟒𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏'],
    ['digits in circles', '④①①①①①①①①①①①①①①①'],
    ['keycaps', '4️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣1️⃣'],
    ['zero-width spaces', Array.from('4111111111111111').join('\u200b')],
    ['soft hyphens', '4111\u00ad1111\u00ad1111\u00ad1111'],
    ['no-break spaces and dashes', '4111\u00a01111–1111‑1111'],
    ['lines', '4111\n1111\n1111\n1111'],
    ['spaces between all digits', Array.from('4111111111111111').join(' ')],
    ['letters that touch it', 'card4111111111111111exp'],
    ['underscores', 'cc_4111111111111111_x'],
    ['commas around it', '7,4111111111111111,12/29'],
  ])('finds a card number written with %s, from end to end', async (_, written) => {
    const { value, findings } = await redactText(`a ${written} b`, rules);
    expect(findings.map(({ kind }) => kind)).toEqual(['credit-card']);
    expect(value).toMatch(/^a (?:card|cc_|7,)?\[CREDIT_CARD_1\](?:exp|_x|,12\/29)? b$/);
  });

  it('keeps data URLs with base64, and nothing else in their place', async () => {
    const image = `data:image/png;base64,${Buffer.from('x'.repeat(99)).toString('base64')}4111111111111111`;
    expect((await redactText(`![](${image})`, rules)).findings).toEqual([]);
    expect((await redactText(`data:text/plain,${CARD}`, rules)).value).toBe('data:text/plain,[CREDIT_CARD_1]');
    expect((await redactText(`${image} ${CARD}`, rules)).value).toBe(`${image} [CREDIT_CARD_1]`);
  });
});

describe('JSON as text', () => {
  it('stays JSON, and is unchanged around the values', async () => {
    const text =
      '{ "n": 12345678901234567890,\n  "a": ["anna@example.com", "4111111111111111"], "card": 4111111111111111 }';
    const { value } = await redactText(text, rules);
    expect(value).toBe(
      '{ "n": 12345678901234567890,\n  "a": ["[EMAIL_1]", "[CREDIT_CARD_1]"], "card": "[CREDIT_CARD_1]" }',
    );
  });

  it('is read with its escapes and names, and in JSON as text inside it', async () => {
    const inner = JSON.stringify({ 'bob@example.com': 4111111111111111, note: 'tab\t\u0000 "anna@example.com"' });
    const text = JSON.stringify({ inner, escaped: 'x' }).replace('"x"', '"\\u0061nna\\u0040example.com"');
    const { value } = await redactText(text, rules);
    const outer = JSON.parse(value) as { inner: string; escaped: string };
    expect(outer.escaped).toMatch(/^\[EMAIL_\d\]$/);
    expect(JSON.parse(outer.inner)).toEqual({
      '[EMAIL_1]': '[CREDIT_CARD_1]',
      note: `tab\t\u0000 "${outer.escaped}"`,
    });
  });

  it('with a name that is a hint for the rule', async () => {
    const { value } = await redactText('{"birthDate":"1985-03-12","since":"1985-03-12","phone":"4155552671"}', rules);
    expect(JSON.parse(value)).toEqual({ birthDate: '[DATE_OF_BIRTH_1]', since: '1985-03-12', phone: '[PHONE_1]' });
  });

  it('that is invalid is searched as plain text', async () => {
    expect((await redactText('{"a": "anna@example.com"', rules)).value).toBe('{"a": "[EMAIL_1]"');
  });

  it('stays JSON with any values around, at any depth', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue(),
        fc.integer({ min: 1, max: 10 }),
        fc.boolean(),
        async (around, depth, asNumber) => {
          let value: unknown = [around, asNumber ? 4111111111111111 : `"\\${CARD}\n`];
          for (let i = 0; i < depth; i++) value = JSON.stringify({ value });
          const { value: redacted } = await redactText(value as string, rules);
          expect(redacted.replaceAll('\\', '')).not.toMatch(/4111.?1111/);
          let read: unknown = redacted;
          for (let i = 0; i < depth; i++) read = (JSON.parse(read as string) as { value: unknown }).value;
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('redactValue', () => {
  it('gives a rule the name of the nearest member: of those around it a date of birth may not be known', async () => {
    const { value } = await redactValue({ birthDate: '1985-03-12', birth: { date: '1985-03-12' } }, rules);
    expect(value).toEqual({ birthDate: '[DATE_OF_BIRTH_1]', birth: { date: '1985-03-12' } });
  });

  it('searches texts, numbers and names, returns the places, and does not change the value', async () => {
    const value = {
      to: ['anna@example.com'],
      'bob@example.com': { card: 4111111111111111 },
      id: 7,
      no: null,
      yes: true,
    };
    const before = structuredClone(value);
    const redacted = await redactValue(value, rules);
    expect(redacted.value).toEqual({
      to: ['[EMAIL_1]'],
      '[EMAIL_2]': { card: '[CREDIT_CARD_1]' },
      id: 7,
      no: null,
      yes: true,
    });
    expect(redacted.findings).toEqual([
      { kind: 'email', start: 0, end: 16, rule: 'email', path: '/to/0' },
      { kind: 'email', start: 0, end: 15, rule: 'email', path: '/[EMAIL_2]', inName: true },
      { kind: 'credit-card', start: 0, end: 16, rule: 'credit-card', path: '/[EMAIL_2]/card' },
    ]);
    expect(value).toEqual(before);
  });

  it('shares the parts without findings', async () => {
    const value = { a: { b: ['x'] }, to: 'anna@example.com' };
    expect((await redactValue(value, rules)).value.a).toBe(value.a);
    expect((await redactValue(value.a, rules)).value).toBe(value.a);
  });

  it('does not change the parts that `except` names', async () => {
    const value = { items: [{ id: CARD, note: CARD }], 'a/b': { [CARD]: CARD }, keep: CARD };
    const redacted = await redactValue(value, rules, { except: ['/items/*/id', '/a~1b', '/keep'] });
    expect(redacted.value).toEqual({ ...value, items: [{ id: CARD, note: '[CREDIT_CARD_1]' }] });
    await expect(redactValue(value, rules, { except: ['items'] })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
  });

  it('keeps the URL of a media part, and searches other text in its place', async () => {
    const part = (url: string) => ({ content: [{ media: { url, contentType: 'image/png' } }, { text: CARD }] });
    const url = 'https://example.com/4111111111111111.png';
    expect((await redactValue(part(url), rules)).value).toEqual({
      content: [part(url).content[0], { text: '[CREDIT_CARD_1]' }],
    });
    expect(JSON.stringify((await redactValue(part(CARD), rules)).value)).not.toContain('4111');
  });

  it('keeps both members of two names with one placeholder, and names like __proto__', async () => {
    const value = JSON.parse(
      '{"Anna@example.com":1,"anna@example.com":2,"__proto__":{"to":"anna@example.com"}}',
    ) as object;
    const redacted = await redactValue(value, rules);
    expect(JSON.stringify(redacted.value)).toBe('{"[EMAIL_1]":1,"[EMAIL_1] (2)":2,"__proto__":{"to":"[EMAIL_1]"}}');
  });

  it('refuses what is not JSON', async () => {
    await expect(redactValue({ a: new Map() }, rules)).rejects.toThrow('/a');
    const cycle: { self?: object } = {};
    cycle.self = cycle;
    await expect(redactValue(cycle, rules)).rejects.toThrow('Not a JSON value');
  });

  it('changes nothing where nothing is found', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        expect((await redactValue(value, [word('absent word')])).value).toBe(value);
      }),
      { numRuns: 100 },
    );
  });
});

describe('piiRules', () => {
  it('has the requested kinds', async () => {
    const some = piiRules({ kinds: ['email'] });
    expect((await redactText(`anna@example.com ${CARD}`, some)).value).toBe(`[EMAIL_1] ${CARD}`);
    expect(piiRules()).toHaveLength(11);
  });

  it('finds numbers of given countries in any grouping', async () => {
    expect((await redactText('22 123 45 67', piiRules())).findings).toEqual([]);
    expect((await redactText('22 123 45 67', piiRules({ locales: ['pl'] }))).value).toBe('[PHONE_1]');
  });

  it('refuses kinds and locales that it does not know', () => {
    expect(() => piiRules({ kinds: ['name' as 'email'] })).toThrow("no kind 'name'");
    expect(() => piiRules({ locales: ['nowhere-at-all-really'] })).toThrow('nowhere-at-all-really');
  });

  it('finds no value that is longer than the rule’s maxLength', async () => {
    for (const rule of rules) expect(rule.maxLength).toBeGreaterThan(0);
    const long = `${'a'.repeat(64)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.com`;
    const { findings } = await redactText(long, rules);
    expect(findings[0]!.end - findings[0]!.start).toBeLessThanOrEqual(320);
  });
});
