/** Where the server asks who is there, the page does. */
import { expect, it } from 'vitest';
import { describePage } from './support/page-setting.ts';
import { modelOf } from './support/sample-in-process.ts';
import { KEYS, serveUsers } from './support/users-in-process.ts';

describePage('a page that asks for a key', (setting) => {
  it('lets in a user with a key, shows them their own conversations, and remembers them when it is loaded again', async () => {
    const { url } = await serveUsers(
      setting,
      modelOf(() => 'Fine.'),
    );
    const chat = await setting.open({ url });
    const { page } = chat;
    chat.serverIsAway = true;
    await page.getByLabel('Your key').fill('an-unknown-key');
    await chat.button('Sign in').click();
    await page.getByText('The server does not know this key.').waitFor();
    await chat.takePicture('sign-in');
    chat.serverIsAway = false;
    await page.getByLabel('Your key').fill(KEYS['ana@example.com']);
    await chat.button('Sign in').click();
    await page.getByText('ana@example.com').waitFor();
    await chat.say('Hello', 'Fine.');
    await page.reload();
    await chat.expectAsked(['Hello']);
    await page.locator('.session').getByText('Hello').waitFor();

    const ben = await setting.open({ url });
    await ben.page.getByLabel('Your key').fill(KEYS['ben@example.com']);
    await ben.button('Sign in').click();
    await ben.page.getByText('ben@example.com').waitFor();
    await ben.page.getByText('Your conversations will be listed here.').waitFor();
    expect([...chat.complaints, ...ben.complaints]).toEqual([]);
  });
});
