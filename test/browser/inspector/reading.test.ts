/** The page hides no data of the store, and says which data is unknown. */
import { genkit, InMemorySessionStore } from 'genkitx-agents';
import { InMemoryMemoryStore, memoryManager, type MemoryDraft } from 'genkitx-agents/memory';
import { expect, it } from 'vitest';
import { message, saveTurns, turn } from '../../inspector/support/sessions.ts';
import { describeInspector } from './setting.ts';

describeInspector('what is read', (setting) => {
  it('has every image, definition and target that the model wrote, and makes no request for them', async () => {
    const store = new InMemorySessionStore();
    const images = '![a cat](https://example.com/cat.png "a title") ![](data:image/png;base64,AAAA)';
    const links = '[run](javascript:alert(1)) [data](data:text/html,x) [fine](https://example.com/fine "its title")';
    const unused = '[hidden]: https://example.com/hidden "Secret"';
    const quoted = '[nested]: javascript:nested';
    const note = '[^note]: A note that nothing refers to.';
    const reply = [images, links, unused, `> ${quoted}`, note].join('\n\n');
    await store.saveSnapshot('a', () =>
      turn('s', { state: { messages: [message('Hello'), message(reply, 'model')] } }),
    );
    const inspector = await setting.open({ store }, { place: '#/session/s' });
    const text = await inspector.detail.locator('.reply').textContent();
    for (const part of [images.slice(0, 49), 'data:image/png;base64,AAAA', 'javascript:alert(1)', 'data:text/html,x'])
      expect(text).toContain(part);
    for (const part of [unused, quoted, note]) expect(text).toContain(part);
    const found = await inspector.detail
      .locator('.reply a')
      .evaluateAll((all) => all.map((one) => [one.getAttribute('href'), one.getAttribute('title')]));
    expect(found).toEqual([['https://example.com/fine', 'its title']]);
    expect(inspector.complaints).toEqual([]);
  });

  it('of a long reply is plain text, in a few elements', async () => {
    const store = new InMemorySessionStore();
    const long = `${'A *word* of `many`, www.example.com and so on. '.repeat(20_000)}The end.`;
    const messages = [message('Hello'), message(long, 'model')];
    await store.saveSnapshot('a', () =>
      turn('s', { state: { messages, artifacts: [{ name: 'a.md', parts: [{ text: long }] }] } }),
    );
    const inspector = await setting.open({ store }, { place: '#/session/s' });
    const elements = () => inspector.detail.locator('.reply *').count();
    await inspector.button('Show all of this turn').click();
    await inspector.detail.getByText('The end.').waitFor();
    expect(await elements()).toBeLessThanOrEqual(2);
    await inspector.tab('Artifacts 1').click();
    await inspector.button('Show the whole text').click();
    await inspector.detail.getByText('The end.').waitFor();
    expect(await elements()).toBeLessThanOrEqual(2);
  });

  it('says which facts are recorded of the input without a window, and of the error of a failed turn', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 1);
    const error = { status: 'INTERNAL' as const, message: 'Something went wrong.', details: { errorId: 'e-7' } };
    await store.saveSnapshot('f', () => turn('failed', { status: 'failed', error }));
    const inspector = await setting.open({ store }, { place: '#/session/s?tab=seen' });
    await inspector.detail.getByText(/Instructions and memories.*are not recorded/).waitFor();
    await inspector.goTo('#/session/failed');
    const alert = inspector.page.getByRole('alert');
    await alert
      .getByText('The log of the process that ran the turn has more about this error, under the id e-7.')
      .waitFor();
  });

  it('reports a link to a missing session or snapshot', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 2);
    const inspector = await setting.open({ store }, { place: '#/session/s?snapshot=gone' });
    const { page } = inspector;
    await page
      .getByRole('status')
      .getByText('There is no snapshot gone in this session: this is the latest turn.')
      .waitFor();
    await inspector.box('Turn 1').click();
    await page.getByText('There is no snapshot').waitFor({ state: 'detached' });
    await inspector.tab('Changes').click();
    await inspector.goTo('#/session/s?snapshot=s-00001&tab=changes');
    await inspector.sees('The first 2 messages are the same.');
    await inspector.goTo('#/session/never');
    await page.getByText('There is no session never. All sessions').waitFor();
  });

  it('distinguishes turns, names each view, and moves the focus to its heading', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 6, { branchEvery: 4 });
    const inspector = await setting.open({ store });
    const { page } = inspector;
    const title = (name: string) => expect.poll(() => page.title()).toBe(`${name} – Inspector`);
    await title('Sessions');
    await inspector.session('s').focus();
    await page.keyboard.press('Enter');
    await title('s');
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('H1');
    const names = () =>
      page.getByRole('treeitem').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    await expect.poll(async () => (await names()).length).toBe(6);
    expect(new Set(await names()).size).toBe(6);
    // The tree has only its turns.
    const tree = page.getByRole('tree');
    expect(await tree.locator('*').count()).toBe(0);
    const owned = (await tree.getAttribute('aria-owns'))!.split(' ');
    const ids = await page.getByRole('treeitem').evaluateAll((all) => all.map(({ id }) => id));
    expect(owned.toSorted()).toEqual(ids.toSorted());
    await inspector.view('Runs').click();
    await title('Background runs');
  });

  it('names its store: the session store, or the memory store under Memory', async () => {
    const memory = memoryManager(genkit(), { store: new InMemoryMemoryStore(), worker: false });
    const inspector = await setting.open({ store: new InMemorySessionStore(), storeName: 'file:sessions', memory });
    const header = inspector.page.getByRole('banner');
    await header.getByText('file:sessions').waitFor();
    await inspector.view('Memory').click();
    await header.getByText('InMemoryMemoryStore').waitFor();
    expect(await header.getByText('file:sessions').count()).toBe(0);
    await inspector.view('Runs').click();
    await header.getByText('file:sessions').waitFor();
  });

  it('of a memory has words for its details, its revisions, its sources and the scores of a search', async () => {
    const store = new InMemoryMemoryStore();
    const scope = { scope: 'user', appName: 'default', userId: 'ana' } as const;
    const at = '2026-01-01T00:00:00.000Z';
    const put = async (text: string, more: Partial<MemoryDraft> = {}) => {
      const read = { sessionId: 'trip', from: 0, to: 1, statement: text, sha256: 'x', at };
      const source = { id: 'chat-1', type: 'explicit', trust: 0.9, ...read } as const;
      const rest = { kind: 'declarative', topics: [], importance: 0.5, confidence: 0.5, validFrom: at } as const;
      await store.commit(scope, [{ op: 'put', memory: { id: 'home', text, sources: [source], ...rest, ...more } }]);
    };
    await put('Ana lives in Bonn.');
    await put('Ana lives in Rome.');
    await put('Ana lives in Rome.', { validTo: at, supersededBy: 'other' });
    const memory = memoryManager(genkit(), { store, worker: false });
    const sessions = new InMemorySessionStore({ rejectBranchingSessions: true });
    for (const id of ['a', 'b']) await sessions.saveSnapshot(id, () => turn('trip', {}));
    const inspector = await setting.open({ store: sessions, memory }, { place: '#/memory?all=yes&id=home' });
    const { page } = inspector;
    const shown = page.getByRole('region', { name: 'Memory', exact: true });
    await shown.getByRole('heading', { name: 'Details' }).waitFor();
    const changes = shown.getByRole('listitem').filter({ hasText: 'Revision' }).getByRole('paragraph');
    expect(await changes.allTextContents()).toEqual([
      `valid to "${at}"`,
      'replaced by "other"',
      'text "Ana lives in Bonn." "Ana lives in Rome."',
      'sources ["Ana lives in Bonn."] ["Ana lives in Rome."]',
      'Ana lives in Bonn.',
    ]);
    await shown.getByText('trust 90 % · source chat-1').waitFor();
    await inspector.button('Show the messages').click();
    await shown.getByText('The branch of these messages is unknown. Session "trip" has 2 leaves').waitFor();
    await shown.getByRole('link', { name: 'Show the session' }).waitFor();
    await put('Ana lives in Rome.');
    await page.getByLabel('Search memories').fill('Where does Ana live?');
    await page.getByText('The search by words is complete. There is no embedder, so no search by meaning.').waitFor();
    await page.getByTitle(/^score \d\.\d\d · by words \d\.\d\d · relevance .* · confidence \d\.\d\d$/).waitFor();
    await inspector.tab('Quarantine').click();
    await page.getByText('No text of this scope waits for a decision.').waitFor();
    await inspector.tab('Dead letters').click();
    await page.getByText('No dead letters.').waitFor();
  });

  it('is visible at 390 px: the tab in the address, and the turn below the buttons', async () => {
    const store = new InMemorySessionStore();
    const ids = await saveTurns(store, 's', 6);
    for (let i = 0; i < 3; i++)
      ids.push((await store.saveSnapshot(`branch-${i}`, () => turn('s', { parentId: ids[4]! })))!);
    const inspector = await setting.open({ store }, { place: '#/session/s?tab=facts', width: 390, height: 844 });
    const { page } = inspector;
    await inspector.sees('Saved first');
    const isInSight = () =>
      inspector.tab('Facts').evaluate((tab) => {
        const { left, right } = tab.getBoundingClientRect();
        return left >= 0 && Math.floor(right) <= window.innerWidth;
      });
    await expect.poll(isInSight).toBe(true);
    const covers = () =>
      page.evaluate(() => {
        const [box, buttons] = ['.box[aria-selected=true]', '.react-flow__controls'].map((one) =>
          document.querySelector(one)!.getBoundingClientRect(),
        );
        return box!.right > buttons!.left && box!.bottom > buttons!.top;
      });
    for (const id of ids) {
      await inspector.goTo(`#/session/s?snapshot=${id}&tab=facts`);
      await page.locator(`.box[aria-selected=true]#node-${id}`).waitFor();
      await expect.poll(covers).toBe(false);
    }
  });
});
