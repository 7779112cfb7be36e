/** The page without an answer of its server, and after a restart of the server. */
import { InMemorySessionStore } from 'genkitx-agents';
import { expect, it } from 'vitest';
import { saveTurns } from '../../inspector/support/sessions.ts';
import { describeInspector } from './setting.ts';

describeInspector('the connection', (setting) => {
  it('is reported as lost after the server’s end, and as not accepted by a restarted server', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 2);
    const addresses: string[] = [];
    const { inspector, stop, start } = await setting.openServed({
      store,
      pollIntervalMs: 50,
      onAddress: (address) => addresses.push(address),
    });
    const { page } = inspector;
    const notice = page.getByRole('alert');
    await inspector.session('s').waitFor();
    await stop();
    await notice.getByText('The inspector does not answer').waitFor();
    const address = await start();
    await notice.getByText('does not accept this page any more').waitFor();

    // A part of the page that was not loaded before can't be loaded now; the list still works.
    await inspector.session('s').click();
    await page.getByText('This can’t be shown.').waitFor();
    await notice.getByText('does not accept this page any more').waitFor();
    await inspector.button('Reload').click();
    await page.getByText('Open the inspector by an address with a one-time token.').waitFor();
    expect(addresses).toHaveLength(1);

    // The page works again after the inspector was opened in another tab.
    await page.goto(address);
    await inspector.session('s').waitFor();
    expect(await notice.count()).toBe(0);
  });

  it('comes back automatically: a session and the list continue live', async () => {
    const store = new InMemorySessionStore();
    const ids = await saveTurns(store, 's', 2);
    const { inspector } = await setting.openServed({ store, pollIntervalMs: 50 });
    const { page } = inspector;
    const notice = page.getByRole('alert').getByText('The inspector does not answer');
    for (const place of ['#/session/s', '#/sessions']) {
      await inspector.goTo(place);
      await page.getByText('s', { exact: true }).first().waitFor();
      await page.context().setOffline(true);
      // Open streams stay open offline; a page that becomes visible again opens a new one.
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
      await notice.waitFor();
      await page.context().setOffline(false);
      await notice.waitFor({ state: 'detached' });
    }
    await saveTurns(store, 'later', 1);
    await inspector.session('later').waitFor();
    expect(ids).toHaveLength(2);
  });

  it('is checked again after a lost request, while the live stream is open and silent', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 2);
    const inspector = await setting.open({ store, pollIntervalMs: 50 });
    const { page } = inspector;
    await inspector.session('s').click();
    await inspector.tab('What the model saw').waitFor();
    await page.route('**/api/seen*', (route) => route.abort());
    await inspector.tab('What the model saw').click();
    const notice = page.getByRole('alert').getByText('The inspector does not answer');
    await notice.waitFor();
    await notice.waitFor({ state: 'detached' });
  });

  it('is tried again after a failed read', async () => {
    const store = new InMemorySessionStore();
    await saveTurns(store, 's', 2);
    const inspector = await setting.open({ store, pollIntervalMs: 50 });
    const { page } = inspector;
    await inspector.session('s').waitFor();
    const fail = (paths: string) => page.route(paths, (route) => route.fulfill({ status: 500, body: '{}' }));
    const tryAgain = async () => {
      await page.unrouteAll();
      await inspector.button('Try again').click();
    };
    await fail('**/api/sessions*');
    await page.getByLabel('Search sessions').fill('s');
    await page.getByRole('alert').waitFor();
    await tryAgain();
    await inspector.session('s').waitFor();
    await fail('**/api/tree*');
    await inspector.session('s').click();
    await page.getByText('The session can’t be read.').waitFor();
    await tryAgain();
    await inspector.box('Turn 2').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});
