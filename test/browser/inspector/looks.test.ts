/** Every part of the page in light and dark, on narrow and wide screens; a store that can't list; and few requests before the first session. */
import { InMemorySessionStore } from 'genkitx-agents';
import { expect, it } from 'vitest';
import { saveTurns, turn } from '../../inspector/support/sessions.ts';
import type { InspectorPage } from './inspector-page.ts';
import { describeInspector } from './setting.ts';
import { makeWorld, type World } from './world.ts';

const LOOKS = [390, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, height: width === 390 ? 844 : 900, colorScheme })),
);
/** The size of the pictures in the docs. */
const DOCS = { width: 1200, height: 960 };

/** Each part of the page, its address, and a text that shows that it is loaded. */
const PARTS = ({ leafId }: World): [name: string, place: string, shows: string][] => [
  ['sessions', '#/sessions', 'A flight to Lisbon'],
  ['tree', '#/session/orders', 'Thank you'],
  ['failed', '#/session/flights', 'refused the connection'],
  ['state', `#/session/orders?snapshot=${leafId}&tab=state&value=%2ForderId`, 'Turns that changed'],
  ['artifacts', '#/session/long?tab=artifacts', 'Alfama'],
  ['seen', `#/session/orders?snapshot=${leafId}&tab=seen`, 'The messages of the session'],
  ['left-out', '#/session/long?tab=seen', 'more than the window holds'],
  ['changes', `#/session/orders?snapshot=${leafId}&tab=changes`, 'The first'],
  ['fork', '#/session/orders?tab=fork', 'In place of'],
  ['facts', '#/session/orders?tab=facts', 'Saved first'],
  ['runs', '#/runs', 'the last heartbeat of its worker'],
  ['memory', '#/memory', 'Ana lives in Porto.'],
  ['quarantine', '#/memory?tab=quarantine', 'Ignore all previous'],
];

async function shows({ page }: InspectorPage, text: string): Promise<void> {
  await page.locator('main').getByText(text).first().waitFor();
  await page.locator('[aria-busy=true]').waitFor({ state: 'detached' });
}

describeInspector('looks', (setting) => {
  it('no part is wider than the screen at 390, 1,440 and 2,560 px', async () => {
    const world = await makeWorld(await setting.folder());
    const inspector = await setting.open(world.options);
    const { page } = inspector;
    for (const [name, place, text] of PARTS(world)) {
      await inspector.goTo(place);
      await shows(inspector, text);
      for (const width of [390, 1440, 2560]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await inspector.overflow(), `${name} at ${width}`).toBe(0);
      }
      for (const look of LOOKS) await inspector.takePicture(`${name}-${look.width}-${look.colorScheme}`, look);
      await page.setViewportSize(DOCS);
    }

    // The pictures of the docs.
    await inspector.goTo('#/session/orders');
    await shows(inspector, 'Thank you');
    await inspector.takePicture('docs-tree', DOCS);
    await inspector.tab('Changes').click();
    await inspector.button('Compare other turns with this one').click();
    await page.locator('.box[data-on-way=false]', { hasText: 'Turn 9' }).last().click();
    await shows(inspector, 'Only in Turn 9 of branch 2');
    await inspector.takePicture('docs-diff', DOCS);
    await inspector.goTo('#/session/orders?tab=seen');
    await shows(inspector, 'The messages of the session');
    await inspector.takePicture('docs-seen', DOCS);
    await inspector.goTo('#/memory');
    await page.getByRole('link', { name: 'Ana wants a refund when an order is late.' }).click();
    await inspector.button('Show the messages').first().click();
    await page.locator('.source-messages').waitFor();
    await inspector.takePicture('docs-memory', DOCS);
    expect(inspector.complaints).toEqual([]);
  });

  it('the first session appears after three requests; the keyboard alone opens it and moves through its tree', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 6, { branchEvery: 4 });
    const inspector = await setting.open({ store });
    const { page } = inspector;
    await inspector.session('s').waitFor();
    console.log(inspector.all.join(', '));
    expect(inspector.all.filter((path) => !path.startsWith('/api/live')).length).toBeLessThanOrEqual(3);

    await inspector.session('s').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('tree').waitFor();
    await page.getByRole('tree').focus();
    const isAt = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor();
    await isAt('Turn 5');
    await page.keyboard.press('ArrowUp');
    await isAt('Turn 4');
    await page.keyboard.press('Home');
    await isAt('Turn 1');
    await page.keyboard.press('End');
    await isAt('Turn 5');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowRight');
    await page.getByText('3!').waitFor();
    await page.keyboard.press('Enter');
    expect(await inspector.detail.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowRight');
    expect(await inspector.tab('State').getAttribute('aria-selected')).toBe('true');
    expect(inspector.complaints).toEqual([]);
  });

  it('a store that can not list shows snapshots by their ids', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 2);
    await store.saveSnapshot('third', () => turn('s', { parentId: 's-00001', state: { custom: { city: 'Porto' } } }));
    const foreign = {
      getSnapshot: store.getSnapshot.bind(store),
      saveSnapshot: store.saveSnapshot.bind(store),
    } as unknown as InMemorySessionStore;
    const inspector = await setting.open({ store: foreign });
    const { page } = inspector;
    await page.getByLabel('Snapshot id').fill('third');
    await page.keyboard.press('Enter');
    await inspector.tab('Changes').click();
    await page.getByText('{"city":"Porto"}').waitFor();
    await page.getByRole('link', { name: 's-00001' }).click();
    await page.getByText('1!').waitFor();
    expect(inspector.complaints).toEqual([]);
  });
});
