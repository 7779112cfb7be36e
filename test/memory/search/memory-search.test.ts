import type { MemoryScopeId, MemorySearchResult, MemoryStoreOptions, SnapshotPathPrefix } from 'genkitx-agents/memory';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ScopeSearchRequest } from '../../../src/memory/search/search-run.ts';
import { MemorySearch } from '../../../src/memory/search/memory-search.ts';
import { ADA, BOB, draft, InMemoryMemoryStore, message, NOON, put, TestClock, watched } from './support.ts';

let store: InMemoryMemoryStore;
let search: MemorySearch;
const clock = new TestClock();

beforeEach(() => {
  store = new InMemoryMemoryStore();
  search = new MemorySearch(store, {}, { clock });
});

const ids = ({ memories }: MemorySearchResult): string[] => memories.map(({ memory }) => memory.id);
const find = async (
  query: string,
  more: Partial<ScopeSearchRequest> = {},
  tenant: MemoryStoreOptions = {},
): Promise<string[]> => ids(await search.search({ scope: ADA, query, ...more }, tenant));
/** The score by words of each found memory, as a share of the best score. */
async function sharesOf(query: string): Promise<Record<string, number>> {
  const { memories } = await search.search({ scope: ADA, query });
  const best = memories[0]!.parts.lexical!;
  return Object.fromEntries(memories.map(({ memory, parts }) => [memory.id, parts.lexical! / best]));
}

describe('what is found', () => {
  it('finds a memory by other forms of its words, best first', async () => {
    await put(
      store,
      ADA,
      draft('seat', 'The user prefers window seats'),
      draft('tea', 'The user drinks tea'),
      draft('flight', 'The user was seated in row 3'),
    );
    expect(await find('Which seat does she like by the window?')).toEqual(['seat', 'flight']);
  });

  it('finds what changed and what did not, while a store answers slowly', async () => {
    await put(store, ADA, draft('window', 'The user likes a seat by the window'), draft('tea', 'The user drinks tea'));
    expect(await find('Which seat?')).toEqual(['window']);
    const changes = store.changes.bind(store);
    store.changes = async (...of) => {
      for (let i = 0; i < 3; i++) await new Promise(setImmediate);
      return changes(...of);
    };
    expect(await find('Which seat?')).toEqual(['window']);
    const changing = find('Which seat?');
    await put(store, ADA, draft('aisle', 'The user likes a seat by the aisle'));
    expect((await changing).toSorted()).toEqual(['aisle', 'window']);
    const removing = find('Which seat?');
    await store.commit(ADA, [{ op: 'remove', id: 'aisle' }]);
    expect(await removing).toEqual(['window']);
    expect(await find('What does the user drink?', { asOf: new Date(0).toISOString() })).toEqual([]);
  });

  it('finds the newest of many that fit equally', async () => {
    await put(store, ADA, ...Array.from({ length: 600 }, (_, i) => draft(`${i}`, 'The user likes this seat')));
    expect(await find('Which seat?', { k: 3 })).toEqual(['599', '598', '597']);
  });

  it('finds nothing for stop words, and nothing in an empty scope', async () => {
    await put(store, ADA, draft('a', 'What is it that the user has?'));
    expect(await find('what is that and where was it')).toEqual([]);
    expect(await find('window', { scope: BOB })).toEqual([]);
  });

  it('finds a memory that has only stop words by these words', async () => {
    await put(store, ADA, draft('hamlet', 'To be or not to be'), draft('tea', 'The user drinks tea'));
    expect(await find('to be or not to be')).toEqual(['hamlet']);
  });

  it('scores by relevance, recency, importance and confidence, as its parts say', async () => {
    const [source] = draft('', '').sources;
    const old = [{ ...source!, at: new Date(NOON - 30 * 86_400_000).toISOString() }];
    await put(
      store,
      ADA,
      draft('old', 'Likes espresso', { sources: old, importance: 1, confidence: 0.2 }),
      draft('new', 'Likes espresso'),
    );
    const { memories } = await search.search({ scope: ADA, query: 'espresso' });
    expect(memories.map(({ memory }) => memory.id)).toEqual(['new', 'old']);
    const { score, parts } = memories[1]!;
    expect(parts).toMatchObject({ relevance: 1, importance: 1, confidence: 0.2 });
    expect(parts.recency).toBeCloseTo(0.5, 5);
    expect(score).toBeCloseTo((1 + 0.1 * 0.5 + 0.1) * (0.5 + 0.5 * 0.2), 5);
  });

  it('takes weights', async () => {
    await put(
      store,
      ADA,
      draft('sure', 'espresso', { confidence: 1 }),
      draft('vital', 'espresso', { confidence: 0, importance: 1 }),
    );
    const weighing = new MemorySearch(store, { weights: { confidence: 0, importance: 5 } }, { clock });
    expect(ids(await weighing.search({ scope: ADA, query: 'espresso' }))).toEqual(['vital', 'sure']);
    expect(await find('espresso')).toEqual(['sure', 'vital']);
    expect(() => new MemorySearch(store, { weights: { confidence: 1.1 } })).toThrow(
      /confidence must be a number of 0 to 1/,
    );
  });

  it('respects k, minScore, topics and kind', async () => {
    await put(
      store,
      ADA,
      draft('one', 'espresso', { topics: ['drinks'] }),
      draft('two', 'espresso with milk and sugar', { topics: ['food'] }),
      draft('how', 'To make espresso, grind beans', { kind: 'procedural' }),
    );
    expect(await find('espresso', { k: 1 })).toEqual(['one']);
    expect(await find('espresso', { topics: ['food'] })).toEqual(['two']);
    expect(await find('espresso', { kind: 'procedural' })).toEqual(['how']);
    expect(await find('espresso', { minScore: 2 })).toEqual([]);
  });

  it('gives the neighbours of a message, and its session, a part of its score', async () => {
    await put(
      store,
      ADA,
      message('s1', 0, 'Hello there'),
      message('s1', 1, 'I have a pottery class.'),
      message('s1', 2, 'Wow'),
      message('s1', 3, 'I quit last week.'),
      message('s1', 9, 'Good night'),
      message('s2', 2, 'I quit last week.'),
    );
    const shares = await sharesOf('pottery');
    expect(Object.keys(shares).toSorted()).toEqual(['s1-0', 's1-1', 's1-2', 's1-3']);
    expect(shares['s1-0']).toBeCloseTo((0.6 + 0.2) / 1.2, 5);
    expect(shares['s1-2']).toBeCloseTo((0.6 + 0.2) / 1.2, 5);
    expect(shares['s1-3']).toBeCloseTo((0.4 + 0.2) / 1.2, 5);
  });

  it('prefers answers to questions in a dialogue', async () => {
    await put(store, ADA, message('s1', 0, 'Pottery?'), message('s2', 0, 'Pottery!'), draft('fact', 'pottery?'));
    const shares = await sharesOf('pottery');
    expect(shares['s1-0']! / shares['s2-0']!).toBeCloseTo(0.8, 5);
    expect(shares['fact']).toBeGreaterThan(shares['s1-0']!);
  });

  it('gives no part of a score to facts that were learned from messages beside', async () => {
    const facts = [message('s', 0, 'The user asked for wine.'), message('s', 1, 'The user is ill.')];
    await put(store, ADA, ...facts.map((one) => ({ ...one, role: undefined })));
    expect(await find('wine')).toEqual(['s-0']);
  });

  it('counts each word of a query once among neighbours, where it weighs most', async () => {
    await put(
      store,
      ADA,
      message('s', 0, 'I have a pottery class.'),
      message('s', 1, 'The pottery class starts.'),
      message('s', 2, 'A pottery class it is.'),
      message('t', 0, 'I have a pottery class.'),
    );
    const shares = await sharesOf('pottery');
    expect(shares['s-1']).toBeCloseTo(shares['t-0']!, 5);
  });

  it('prefers messages of the person that the query names', async () => {
    await put(
      store,
      ADA,
      message('s1', 0, 'Anna: My brother moved to Bern.'),
      message('s2', 0, 'Ben: Your brother moved to Bern, Anna.'),
    );
    expect(await find('Where did the brother of Anna move?')).toEqual(['s1-0', 's2-0']);
    expect(await find('Where did the brother of Ben move?')).toEqual(['s2-0', 's1-0']);
  });

  it('finds irregular forms of an English word', async () => {
    await put(store, ADA, draft('race', 'The user ran a marathon'), draft('shoes', 'The user bought shoes'));
    expect(await find('When did she run?')).toEqual(['race']);
    expect(await find('What did she buy?')).toEqual(['shoes']);
    expect(await find('running')).toEqual(['race']);
  });

  it.each([
    ['live', 'Ada lives in Rome'],
    ['living', 'Ada lives in Rome'],
    ['lived', 'Ada lives in Rome'],
    ['leave', 'She leaves at nine'],
    ['bits', 'A bit of sugar'],
    ['bit', 'Some bits of sugar'],
    ['thoughts', 'She thought about a dog'],
    ['founded', 'A firm that she found'],
    ['ran', 'Ada runs'],
    ['runs', 'Ada ran'],
    ['spoken', 'Ada spoke'],
    ['bought', 'Ada buys shoes'],
    ['buys', 'Ada bought shoes'],
  ])('finds by %j: %s', async (query, text) => {
    await put(store, ADA, draft('it', text), draft('other', 'Completely unrelated espresso'));
    expect(await find(query)).toEqual(['it']);
  });

  it('counts an irregular form as one word of a query', async () => {
    await put(store, ADA, draft('it', 'Ada runs, swims, sings and writes'), draft('other', 'espresso'));
    const relevanceOf = async (query: string) =>
      (await search.search({ scope: ADA, query })).memories[0]!.parts.relevance;
    expect(await relevanceOf('run Bern Rome')).toBeCloseTo(2 / 3, 5);
    expect(await relevanceOf('ran Bern Rome')).toBeCloseTo(2 / 3, 5);
    expect(await relevanceOf('went, saw, ran and swam')).toBe(1);
  });

  it('does not prefer a speaker whose name is a form of a word of the query', async () => {
    await put(store, ADA, message('s1', 0, 'Drew: Kim has moved.'), message('s2', 0, 'Kim: Drew has moved.'));
    expect(await sharesOf('draw')).toEqual({ 's1-0': 1, 's2-0': 1 });
    expect(await find('Drew')).toEqual(['s1-0', 's2-0']);
  });

  it('forgets the speaker of a message that was replaced', async () => {
    await put(store, ADA, message('s1', 0, 'Anna: Our brother moved.'), message('s2', 0, 'Ben: Anna, Anna moved.'));
    expect((await find('Where did Anna move?'))[0]).toBe('s1-0');
    const moved = message('s1', 0, 'Cleo: Our brother moved.');
    await put(store, ADA, moved);
    expect((await find('Where did Anna move?'))[0]).toBe('s2-0');
  });

  it.each(['When did she start pottery?', 'For how long has she done pottery?'])(
    'prefers messages that name a time for %j',
    async (query) => {
      await put(
        store,
        ADA,
        message('s1', 0, 'Pottery with Maria'),
        message('s2', 0, 'Pottery on Monday'),
        draft('fact', 'Pottery on Monday'),
      );
      const shares = await sharesOf(query);
      expect(shares['s2-0']! / shares['s1-0']!).toBeCloseTo(1.4, 5);
      expect(shares['fact']).toBeLessThan(shares['s2-0']!);
      const others = await sharesOf('What does she make when she does pottery?');
      expect(others['s2-0']! / others['s1-0']!).toBeCloseTo(1, 5);
    },
  );

  it.each(['How was pottery?', 'How was pottery? 🏺', '陶芸 pottery はどう？'])(
    'gives the message after the question %j more than its score',
    async (question) => {
      await put(
        store,
        ADA,
        message('s', 0, 'Hello'),
        message('s', 1, question),
        message('s', 2, 'I quit.'),
        message('s', 3, 'Oh'),
      );
      const shares = await sharesOf('pottery');
      expect(Object.keys(shares).slice(0, 2)).toEqual(['s-2', 's-1']);
      expect(shares['s-1']! / shares['s-2']!).toBeCloseTo((0.8 * 1.2) / (0.9 + 0.2), 5);
      expect(shares['s-0']! / shares['s-2']!).toBeCloseTo((0.6 + 0.2) / (0.9 + 0.2), 5);
    },
  );

  it('finds the same in dialogues whose messages were replaced and corroborated as in a new index', async () => {
    const [source] = draft('', '').sources;
    const at = (...indexes: number[]) => ({
      sources: indexes.map((from) => ({ ...source!, sessionId: 's', from, to: from + 1 })),
    });
    await put(store, ADA, draft('a', 'apple', at(1)), draft('b', 'banana', at(2)), draft('other', 'berry', at(2)));
    await put(store, ADA, draft('c', 'cherry', at(3, 4)), draft('once', 'cherry', { sources: [source!] }));
    await find('apple');
    await put(store, ADA, draft('other', 'berry', { validTo: '2026-05-01T11:30:00.000Z', ...at(2) }));
    await put(store, ADA, draft('once', 'cherry', at(9)));
    await find('cherry');
    await put(store, ADA, draft('d', 'date', at(10)));
    for (const query of ['apple', 'banana', 'cherry', 'date', 'berry']) {
      const [warm, cold] = await Promise.all(
        [search, new MemorySearch(store, {}, { clock })].map(async (one) => {
          const { memories } = await one.search({ scope: ADA, query });
          return new Map(memories.map(({ memory, parts }) => [memory.id, parts.lexical!.toFixed(9)]));
        }),
      );
      expect(warm).toEqual(cold);
    }
    // A memory of two adjacent messages is not its own neighbour.
    const { memories } = await search.search({ scope: ADA, query: 'cherry' });
    expect(memories.map(({ parts }) => parts.lexical!.toFixed(9)).slice(0, 2)).toEqual([
      memories[0]!.parts.lexical!.toFixed(9),
      memories[0]!.parts.lexical!.toFixed(9),
    ]);
  });

  it('finds the one memory of a topic or kind among many that have the word', async () => {
    const many = Array.from({ length: 600 }, (_, i) => draft(`m${i}`, `coffee number${i}`, { topics: ['A'] }));
    await put(store, ADA, ...many, draft('b', 'coffee with milk and sugar and cream', { topics: ['B'] }));
    await put(store, ADA, draft('how', 'To brew coffee, pour water over it', { kind: 'procedural' }));
    expect(await find('coffee', { topics: ['B'], deadlineMs: 60_000 })).toEqual(['b']);
    expect(await find('coffee', { kind: 'procedural', deadlineMs: 60_000 })).toEqual(['how']);
  });

  it('finds a message by the month in which it was said', async () => {
    const [source] = draft('', '').sources;
    const said = (id: string, at: string) =>
      draft(id, 'We went hiking', { role: 'user', sources: [{ ...source!, sessionId: id, from: 0, to: 1, at }] });
    await put(store, ADA, said('may', '2025-05-08T10:00:00Z'), said('june', '2025-06-08T10:00:00Z'));
    expect((await find('Where did we hike in May 2025?'))[0]).toBe('may');
    expect((await find('Where did we hike in June?'))[0]).toBe('june');
  });

  it('lets common words of a large scope count beside rarer ones, and alone', async () => {
    await put(
      store,
      ADA,
      ...Array.from({ length: 1_100 }, (_, i) => draft(`m${i}`, `drinks coffee in place${i % 600}`)),
    );
    await put(store, ADA, draft('far', 'drinks tea in place7'));
    const both = { deadlineMs: 60_000, k: 3 };
    expect((await find('coffee place7', both)).toSorted()).toEqual(['far', 'm607', 'm7']);
    expect((await find('coffee place7', both)).at(-1)).toBe('far');
    expect(await find('coffee', both)).toHaveLength(3);
  });

  it('lets common words count alone when the rarer words of a query are unknown', async () => {
    await put(store, ADA, ...Array.from({ length: 1_100 }, (_, i) => draft(`m${i}`, `drinks coffee in place${i}`)));
    expect(await find('coffee in Reykjavik', { deadlineMs: 60_000, k: 3 })).toHaveLength(3);
  });

  it('answers frozen memories: a caller can change none', async () => {
    await put(store, ADA, draft('a', 'espresso'));
    const { memories } = await search.search({ scope: ADA, query: 'espresso' });
    expect(() => ((memories[0]!.memory as { text: string }).text = 'changed')).toThrow(TypeError);
    expect(() => ((memories[0]!.memory.sources[0] as { id: string }).id = 'changed')).toThrow(TypeError);
  });
});

describe('languages', () => {
  it.each([
    [
      'german',
      'Er wohnt seit dem Sommer in einer neuen Wohnung bei den Großeltern',
      'Wo sind die Wohnungen, in denen er wohnte?',
    ],
    [
      'french',
      "L'utilisateur est allé dans les montagnes avec ses enfants",
      'Quelle montagne est-ce que les enfants ont vue ?',
    ],
    ['spanish', 'La usuaria no come los mariscos que le gustan a su hermano', '¿Por qué no come el marisco?'],
    ['english', "Anna's allergies are to peanuts and to nothing else", 'What is Anna allergic to, is it a peanut?'],
  ])('detects %s by its stop words', async (_, text, query) => {
    await put(store, ADA, draft('it', text), draft('other', 'Completely unrelated espresso'));
    expect(await find(query)).toEqual(['it']);
  });

  it.each([
    ['Where is my resume?', "The user's résumé is on the shelf."],
    ["Who are the O'Reillys?", "Mr. O'Reilly lives next door."],
    ["Is O'Reilly's book here?", 'The user lent a book to Reilly.'],
    ['Welche Strasse?', 'Der Benutzer wohnt in der Langen Straße.'],
  ])('finds words that are written in another way: %s', async (query, text) => {
    await put(store, ADA, draft('it', text), draft('other', 'Completely unrelated espresso'));
    expect(await find(query)).toEqual(['it']);
  });

  it('takes the languages of the application', async () => {
    const swedish = new MemorySearch(store, { languages: ['swedish'] }, { clock });
    await put(store, ADA, draft('it', 'Hunden heter Fido och är snäll'));
    expect(ids(await swedish.search({ scope: ADA, query: 'Vad heter hundarna?' }))).toEqual(['it']);
    expect(() => new MemorySearch(store, { languages: ['klingon' as 'english'] })).toThrow(
      /languages must be a list of danish/,
    );
  });

  it('counts the terms of a long query word by word, whatever languages its words are of', async () => {
    const names = ['Anton', 'Berta', 'Carlo', 'Dora', 'Emil', 'Fritz', 'Gustav', 'Heinz'];
    const friends = names.map((name) => draft(name, `Friend ${name}.`));
    const german = draft('german', 'Die Katzen sind nicht mit der Schwester.');
    await put(store, ADA, draft('english', 'The user has a cat.'), german, ...friends);
    // Nine terms; eight of them count.
    const found = await find(`Katzen ${names.join(' ')}`, { k: 20 });
    expect(found.toSorted()).toEqual([...names.slice(0, 7), 'german']);
  });

  it.each([
    ['緑茶は好き？', '彼女は緑茶が好きです', '新しい車を買った'],
    ['コーヒー', 'ユーザーはコーヒーが好きです', 'ユーザーの猫の名前はタマです'],
    ['ｺｰﾋｰは飲む？', 'ユーザーはコーヒーが好きです', '新しい車を買った'],
    ['กาแฟ', 'ผู้ใช้ชอบกาแฟ', 'ผู้ใช้อยู่ที่กรุงเทพ'],
    ['ກາເຟ', 'ຜູ້ໃຊ້ມັກກາເຟ', 'ຜູ້ໃຊ້ຢູ່ວຽງຈັນ'],
    ['កាហ្វេ', 'អ្នកប្រើចូលចិត្តកាហ្វេ', 'អ្នកប្រើរស់នៅភ្នំពេញ'],
    ['ကော်ဖီ', 'အသုံးပြုသူသည်ကော်ဖီကြိုက်သည်', 'အသုံးပြုသူသည်ရန်ကုန်တွင်နေသည်'],
    ['ཇ་མངར་མོ', 'སྤྱོད་མཁན་ཇ་མངར་མོ་ལ་དགའ།', 'སྤྱོད་མཁན་ལྷ་སར་སྡོད།'],
  ])('finds words of scripts without spaces: %s', async (query, text, other) => {
    await put(store, ADA, draft('other', other), draft('it', text));
    expect(await find(query)).toEqual(['it']);
  });

  it.each([
    ['땅콩을 먹어도 돼?', 'peanut'],
    ['내 고양이의 이름이 뭐야?', 'cat'],
    ['서울에서 어디가 좋을까?', 'home'],
    ['커피 마실까?', 'coffee'],
    ['여동생에게 무슨 선물을 줄까?', 'sister'],
    ['회사까지 어떻게 가지?', 'work'],
    ['주말에 비가 오면 뭐 하지?', 'weekend'],
    ['생일이 언제였지?', 'birthday'],
  ])('finds Korean nouns whatever particles they have: %s', async (query, id) => {
    const facts = {
      home: '사용자는 서울에 산다',
      peanut: '사용자는 땅콩에 알레르기가 있다',
      cat: '사용자의 고양이는 나비라고 불린다',
      coffee: '사용자는 커피를 좋아합니다',
      sister: '사용자의 여동생은 책을 좋아한다',
      work: '사용자는 자전거로 회사에 다닌다',
      weekend: '사용자는 주말마다 등산을 한다',
      birthday: '사용자의 생일은 5월 3일이다',
    };
    await put(store, ADA, ...Object.entries(facts).map(([name, text]) => draft(name, text)));
    expect((await find(query))[0]).toBe(id);
  });
});

describe('the index of a scope', () => {
  it('never mixes scopes and tenants', async () => {
    const pathPrefix: SnapshotPathPrefix = (options) => (options?.context?.['tenant'] as string | undefined) ?? 'none';
    store = new InMemoryMemoryStore({ pathPrefix });
    search = new MemorySearch(store, { cacheSize: 10 }, { clock });
    const scopes: MemoryScopeId[] = [
      ...['ada', 'Ada', '*', '..', 'ada/..', 'а\u0064а', 'ada"]', '__proto__'].map(
        (userId) => ({ scope: 'user', appName: 'app', userId }) as const,
      ),
      { scope: 'session', appName: 'app', sessionId: 'ada' },
      { scope: 'app', appName: 'app' },
    ];
    const tenants = ['acme', 'Acme', 'none'];
    const places = tenants.flatMap((tenant) => scopes.map((scope) => ({ tenant, scope })));
    for (const [i, { tenant, scope }] of places.entries()) {
      await store.commit(scope, [{ op: 'put', memory: draft(`m${i}`, `canary of ada place${i}`) }], {
        context: { tenant },
      });
    }
    for (let round = 0; round < 2; round++) {
      for (const [i, { tenant, scope }] of places.entries()) {
        expect(await find('canary ada', { scope }, { context: { tenant } })).toEqual([`m${i}`]);
      }
    }
  });

  it('follows what another handle adds, changes, invalidates and removes', async () => {
    const other = new MemorySearch(store, {}, { clock });
    await put(store, ADA, draft('a', 'likes espresso'), draft('b', 'likes tea'));
    expect(await find('espresso')).toEqual(['a']);
    await put(store, ADA, draft('c', 'hates espresso'), draft('a', 'likes cocoa'));
    expect(await find('espresso')).toEqual(['c']);
    expect(await find('cocoa')).toEqual(['a']);
    await put(store, ADA, draft('c', 'hates espresso', { validTo: '2026-05-01T11:30:00.000Z' }));
    expect(await find('espresso')).toEqual([]);
    await store.commit(ADA, [{ op: 'remove', id: 'a' }]);
    expect(await find('cocoa')).toEqual([]);
    expect(await find('tea')).toEqual(['b']);
    await store.erase(ADA);
    expect(await find('tea')).toEqual([]);
    expect(ids(await other.search({ scope: ADA, query: 'tea' }))).toEqual([]);
  });

  it('scores a memory that was replaced many times like one that was not', async () => {
    for (let i = 0; i < 15; i++) await put(store, ADA, draft('a', `espresso, ${i} times a day`));
    await put(store, BOB, draft('a', 'espresso, 14 times a day'));
    const [often, once] = await Promise.all(
      [ADA, BOB].map(async (scope) => (await search.search({ scope, query: 'espresso' })).memories[0]!.parts.lexical),
    );
    for (let i = 15; i < 30; i++) {
      await put(store, ADA, draft('a', `espresso, ${i} times a day`));
      await find('espresso');
    }
    const { memories } = await search.search({ scope: ADA, query: 'espresso' });
    expect([often, memories[0]!.parts.lexical]).toEqual([once, once]);
  });

  it('returns the current confidence of a memory, although it is not part of the content', async () => {
    await put(store, ADA, draft('a', 'espresso', { confidence: 0.2 }));
    await find('espresso');
    await put(store, ADA, draft('a', 'espresso', { confidence: 0.9 }));
    const { memories } = await search.search({ scope: ADA, query: 'espresso' });
    expect([memories[0]!.memory.confidence, memories[0]!.parts.confidence]).toEqual([0.9, 0.9]);
  });

  it('answers several parallel searches after a removal', async () => {
    await put(store, ADA, ...Array.from({ length: 500 }, (_, i) => draft(`m${i}`, `drinks tea in place${i}`)));
    await find('tea', { deadlineMs: 60_000 });
    await store.commit(ADA, [{ op: 'remove', id: 'm3' }]);
    const searches = Array.from({ length: 5 }, () => search.search({ scope: ADA, query: 'tea', deadlineMs: 60_000 }));
    for (const { memories, report } of await Promise.all(searches))
      expect([memories.length, report.lexical, report.revision]).toEqual([10, 'done', 6]);
  });

  it('sends only one request to a store that has not changed', async () => {
    const { store: counted, calls } = watched(store);
    search = new MemorySearch(counted, {}, { clock });
    await put(store, ADA, draft('a', 'espresso'));
    await find('espresso');
    calls.length = 0;
    expect(await find('espresso')).toEqual(['a']);
    expect(calls).toEqual([{ method: 'changes', read: 0 }]);
  });

  it('hides memories that became invalid or expired after they were indexed', async () => {
    const ends = new Date(NOON + 1_000_000).toISOString();
    await put(
      store,
      ADA,
      draft('valid', 'espresso', { validTo: ends }),
      draft('kept', 'espresso', { expiresAt: ends }),
      draft('stays', 'espresso'),
    );
    expect((await find('espresso')).toSorted()).toEqual(['kept', 'stays', 'valid']);
    clock.pass(1_000_000);
    expect(await find('espresso')).toEqual(['stays']);
  });

  it('finds a memory whose end has moved, whether it was known before it expired or not', async () => {
    const start = clock.now();
    const at = (ms: number) => new Date(start + ms).toISOString();
    const voucher = (expiresAt: string) => draft('voucher', 'The user has a coffee voucher.', { expiresAt });
    await put(store, ADA, voucher(at(1_000)));
    await search.saveIndex(ADA);
    await put(store, ADA, voucher(at(9_000)));
    clock.pass(2_000);
    expect(await find('coffee')).toEqual(['voucher']);
    const cold = new MemorySearch(store, {}, { clock });
    expect(ids(await cold.search({ scope: ADA, query: 'coffee' }))).toEqual(['voucher']);
    clock.pass(8_000);
    expect(await find('coffee')).toEqual([]);
    await put(store, ADA, voucher(at(99_000)));
    expect(await find('coffee')).toEqual(['voucher']);
  });

  it('keeps within its bytes by dropping scopes, and reads them again', async () => {
    const small = new MemorySearch(store, { maxIndexBytes: 1 }, { clock });
    await put(store, ADA, draft('a', 'espresso'));
    for (let round = 0; round < 2; round++)
      expect(ids(await small.search({ scope: ADA, query: 'espresso' }))).toEqual(['a']);
  });

  it('also drops scopes without memories', async () => {
    const { store: counted, calls } = watched(store);
    const small = new MemorySearch(counted, { maxIndexBytes: 1_000_000 }, { clock });
    const look = (userId: string) =>
      small.search({ scope: { scope: 'user', appName: 'barista', userId }, query: 'espresso' });
    const reads = () => calls.filter(({ method }) => method === 'notes').length;
    for (let i = 0; i < 1_000; i++) await look(`user${i}`);
    await look('user999');
    expect(reads()).toBe(1_000);
    await look('user0');
    expect(reads()).toBe(1_001);
  });
});

describe('asOf', () => {
  it('finds the memories that were valid then, by their words at that time', async () => {
    const at = (hour: number): number => Date.parse(`2026-04-01T${hour}:00:00.000Z`);
    const from = new Date(at(10)).toISOString();
    const commit = (text: string, hour: number, more = {}) =>
      store.commit(ADA, [{ op: 'put', memory: draft('home', text, { validFrom: from, ...more }) }], { now: at(hour) });
    await commit('lives in Denver', 10);
    await commit('lives in Lisbon', 12);
    await commit('lives in Lisbon', 14, { validTo: new Date(at(14)).toISOString() });
    expect(await find('Denver')).toEqual([]);
    expect(await find('Lisbon')).toEqual([]);
    expect(await find('Denver', { asOf: new Date(at(11)).toISOString() })).toEqual(['home']);
    expect(await find('Lisbon', { asOf: new Date(at(11)).toISOString() })).toEqual([]);
    expect(await find('Lisbon', { asOf: new Date(at(13)).toISOString() })).toEqual(['home']);
    expect(await find('Lisbon', { asOf: new Date(at(15)).toISOString() })).toEqual([]);
  });
});

describe('hostile queries', () => {
  const long = 'espresso '.repeat(12_000);
  it.each([
    ['operators', 'espresso AND NOT (tea) -milk +sugar "a b" *:* ~2 ^5 \\'],
    ['a pattern', '.*espresso(a+)+$ [[[ ((('],
    ['emoji', '☕️ espresso 👩‍👩‍👧 \ud800'],
    ['100 KB', long],
    ['prototype words', '__proto__ constructor toString hasOwnProperty espresso'],
    ['control characters', 'espresso\u0000\u0007\u202e'],
    ['a long word', `${'e'.repeat(100_000)} espresso`],
  ])('survives %s', async (name, query) => {
    await put(
      store,
      ADA,
      draft('a', `drinks espresso, constructor of __proto__ ${name}`),
      draft('b', long.slice(0, 50_000)),
    );
    const found = await find(query);
    expect(found).toEqual(name === 'a long word' ? [] : expect.arrayContaining(['a', 'b']));
  });

  it.each(['', ' ', '*', '👍', '\u0000', '?'])('finds nothing for %j', async (query) => {
    await put(store, ADA, draft('a', 'espresso'));
    expect(await find(query)).toEqual([]);
  });

  it('refuses an invalid request', async () => {
    const refused = (request: object) => expect(search.search({ scope: ADA, query: 'a', ...request })).rejects;
    await refused({ query: 5 }).toMatchObject({ status: 'INVALID_ARGUMENT' });
    await refused({ query: undefined }).toMatchObject({ status: 'INVALID_ARGUMENT' });
    await refused({ topics: [] }).toMatchObject({ status: 'INVALID_ARGUMENT' });
    await refused({ k: 51 }).toMatchObject({ status: 'INVALID_ARGUMENT' });
    await refused({ asOf: 'yesterday' }).toMatchObject({ status: 'INVALID_ARGUMENT' });
    await refused({ topK: 3 }).toThrow(/topK/);
    await refused({ scope: { scope: 'user', appName: 'barista' } }).toMatchObject({ status: 'INVALID_ARGUMENT' });
    await refused({ scope: { scope: 'user', appName: 'barista', userId: 'ada', more: 1 } }).toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
  });
});
