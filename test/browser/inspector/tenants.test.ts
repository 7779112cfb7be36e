/** The tenant whose sessions the page shows and changes. */
import { InMemorySessionStore } from 'genkitx-agents';
import { expect, it } from 'vitest';
import { turn } from '../../inspector/support/sessions.ts';
import { describeInspector } from './setting.ts';

type Caller = { context: { tenant?: string } };

/** A store that refuses calls without a tenant, like a store whose prefix is the user. */
async function makeOptions() {
  const store = new InMemorySessionStore({
    snapshotPathPrefix: (options) => (options as Caller).context.tenant as string,
  });
  for (const tenant of ['acme', 'globex']) {
    await store.saveSnapshot(`of-${tenant}`, () => turn('same', { parentId: `before-${tenant}` }), {
      context: { tenant },
      session: { title: `Session of ${tenant}` },
    });
  }
  return { store, context: (tenant: string | undefined) => ({ tenant }) };
}

describeInspector('tenants', (setting) => {
  it('are requested if the store needs one, and the list is always that of the tenant in the field', async () => {
    const inspector = await setting.open(await makeOptions());
    const { page } = inspector;
    const field = page.getByLabel('Tenant');
    const name = async (tenant: string) => {
      await field.fill(tenant);
      await page.keyboard.press('Enter');
      await inspector.session(`Session of ${tenant}`).waitFor();
      expect(await inspector.session(/^completed Session/).count()).toBe(1);
    };
    await page.getByRole('alert').getByText('enter it in the field above').waitFor();
    await name('acme');
    await page.reload();
    await inspector.session('Session of acme').waitFor();
    // The data of the first view is not shown for another tenant.
    await name('globex');
    await page.goBack();
    await inspector.session('Session of acme').waitFor();
    expect(await field.inputValue()).toBe('acme');
    expect(inspector.complaints).toEqual([]);
  });

  it('are shown in the field as in the address, and in the question before a deletion', async () => {
    const options = await makeOptions();
    const inspector = await setting.open(options, { place: '#/session/same?tenant=acme' });
    const { page } = inspector;
    const field = page.getByLabel('Tenant');
    await inspector.box('Turn 1').waitFor();
    await field.fill('globex');
    await page.keyboard.press('Enter');
    await inspector.session('Session of globex').waitFor();
    await page.goBack();
    await inspector.box('Turn 1').waitFor();
    expect(await field.inputValue()).toBe('acme');
    // A name that was not submitted is not kept.
    await field.fill('globex');
    await inspector.button('Delete session…').click();
    expect(await field.inputValue()).toBe('acme');
    const question = page.getByRole('dialog');
    await question.getByText('Tenant: acme').waitFor();
    await question.getByRole('button', { name: 'Delete session' }).click();
    await page.getByText('No sessions yet.').waitFor();
    const { store } = options;
    const left = (tenant: string) => store.getSnapshot({ sessionId: 'same', context: { tenant } });
    expect(await left('acme')).toBeUndefined();
    expect(await left('globex')).toBeDefined();
    expect(inspector.complaints).toEqual([]);
  });
});
