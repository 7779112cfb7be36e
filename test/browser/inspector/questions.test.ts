/** Questions of a developer during an incident, each answered with at most four clicks from the list of sessions. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InspectorPage } from './inspector-page.ts';
import { describeInspector } from './setting.ts';
import { makeWorld } from './world.ts';

const MOST_CLICKS = 4;

type Way = (page: InspectorPage) => Promise<void>;

/** Clicks, choices and filled fields all count. */
const QUESTIONS: [question: string, way: Way][] = [
  [
    'Which sessions failed?',
    async (inspector) => {
      inspector.clicks++;
      await inspector.page.getByLabel('Status').selectOption('failed');
      await inspector.session('A flight to Lisbon').waitFor();
      await inspector.session('Orders of Ana').waitFor({ state: 'detached' });
    },
  ],
  [
    'Which session took many tokens?',
    async (inspector) => {
      inspector.clicks++;
      await inspector.page.getByLabel('Tokens').selectOption('10000');
      await inspector.session(/A long plan.*50,000 tokens/).waitFor();
      await inspector.session('A flight to Lisbon').waitFor({ state: 'detached' });
    },
  ],
  [
    'Where is the session of a user?',
    async (inspector) => {
      inspector.clicks++;
      await inspector.page.getByLabel('Search sessions').fill('bo');
      await inspector.session('Orders of Ana').waitFor({ state: 'detached' });
      await inspector.session('A flight to Lisbon').waitFor();
    },
  ],
  [
    'Why did this turn fail?',
    async (inspector) => {
      await inspector.click(inspector.session('A flight to Lisbon'));
      await inspector.page.getByRole('alert').getByText('The timetable at 10.0.0.7 refused the connection.').waitFor();
    },
  ],
  [
    'Which turn changed `orderId`?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.click(inspector.tab('State'));
      await inspector.click(inspector.button(/^orderId/));
      const turns = inspector.page.getByRole('region', { name: 'Turns that changed /orderId' });
      await turns.getByRole('listitem').filter({ hasText: 'Turn 3' }).getByText('"1042"').waitFor();
    },
  ],
  [
    'What did the model see at turn 7?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.goToTurn(7);
      await inspector.click(inspector.tab('What the model saw'));
      await inspector.page.getByRole('row', { name: /^Summary turns 1–5 \d+$/ }).waitFor();
      await inspector.page.getByRole('row', { name: /^Tools \d+ tools [\d,]+$/ }).waitFor();
      await inspector.sees(/^About [\d,]+ of at most 8,000 tokens; the model counted [\d,]+\./);
    },
  ],
  [
    'What does the summary say, and of which turns?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.click(inspector.tab('What the model saw'));
      await inspector.click(inspector.page.getByText(/^The summary of turns 1–\d+$/));
      await inspector.page.locator('blockquote').getByText('“Where is order 1042?”').waitFor();
    },
  ],
  [
    'What was left out, and why?',
    async (inspector) => {
      await inspector.click(inspector.session('A long plan'));
      await inspector.click(inspector.tab('What the model saw'));
      await inspector.sees('Earlier turns: 8 messages (turns 1–4), more than the window holds.');
      await inspector.sees('Documents: not found in time.');
      await inspector.click(inspector.page.getByText('8 messages not sent'));
      await inspector.sees('Question 1');
    },
  ],
  [
    'What did the tool answer?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.goToTurn(3);
      await inspector.click(inspector.page.locator('[data-added=true]').getByText('findOrder', { exact: false }));
      await inspector.page.locator('figure', { hasText: 'Output' }).getByText('shipped').waitFor();
    },
  ],
  [
    'How many tokens did the turn take, and which model answered?',
    async (inspector) => {
      await inspector.click(inspector.session('A long plan'));
      await inspector.detail.getByText('gemini-2.5-flash · 50,000 tokens').waitFor();
    },
  ],
  [
    'What changed in this turn?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.goToTurn(6);
      await inspector.click(inspector.tab('Changes'));
      const state = inspector.detail.getByRole('listitem').filter({ hasText: '/orderId' });
      expect(await state.locator('del').textContent()).toBe('"1042"');
      expect(await state.locator('ins').textContent()).toBe('"1035"');
      await inspector.page
        .getByRole('region', { name: /^Only in/ })
        .getByText('And order 1035?')
        .waitFor();
    },
  ],
  [
    'How do two branches differ?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.click(inspector.tab('Changes'));
      await inspector.click(inspector.button('Compare other turns with this one'));
      await inspector.click(inspector.page.locator('.box[data-on-way=false]', { hasText: 'Turn 9' }).last());
      const sides = inspector.page.locator('.sides.both');
      await sides.getByText('What is your refund policy?').waitFor({ state: 'detached' });
      await sides.getByText('Thank you').first().waitFor();
      await expect.poll(() => sides.getByRole('region', { name: /^Only in/ }).count()).toBe(2);
    },
  ],
  [
    'What did the agent make?',
    async (inspector) => {
      await inspector.click(inspector.session('A long plan'));
      await inspector.click(inspector.tab('Artifacts 1'));
      await inspector.page.getByRole('cell', { name: 'Alfama' }).waitFor();
    },
  ],
  [
    'Why is this run expired?',
    async (inspector) => {
      await inspector.click(inspector.view('Runs'));
      const expired = inspector.page.getByRole('region', { name: 'Expired' });
      await expired
        .getByText(/the last heartbeat of its worker was at .*, and the lease of 30 s expired (19|2\d) min/)
        .waitFor();
      await expired.getByText('taken over 1 time').waitFor();
    },
  ],
  [
    'Which worker runs this, and how long does its lease last?',
    async (inspector) => {
      await inspector.click(inspector.view('Runs'));
      const running = inspector.page.getByRole('region', { name: 'Running' });
      await running.getByText('worker-busy').waitFor();
      await running.getByText(/^The lease expires in \d+ h/).waitFor();
    },
  ],
  [
    'Why was this run given up?',
    async (inspector) => {
      await inspector.click(inspector.view('Runs'));
      const given = inspector.page.getByRole('region', { name: 'Given up' });
      await given.getByText('Given up: 3 workers died in this run.').waitFor();
    },
  ],
  [
    'Where does this memory come from?',
    async (inspector) => {
      await inspector.click(inspector.view('Memory'));
      await inspector.click(inspector.page.getByRole('link', { name: 'Ana wants a refund when an order is late.' }));
      await inspector.click(inspector.button('Show the messages').first());
      await inspector.page.locator('.source-messages').getByText('Refund it, because it is late').waitFor();
      await inspector.click(inspector.page.getByRole('link', { name: 'Show them in their session' }));
      await inspector.page.getByRole('heading', { name: 'Turn 7' }).waitFor();
    },
  ],
  [
    'What was known four weeks ago?',
    async (inspector) => {
      await inspector.click(inspector.view('Memory'));
      await inspector.page.getByRole('link', { name: 'Ana wants a refund' }).waitFor();
      inspector.clicks++;
      await inspector.page.getByLabel('As of', { exact: true }).fill('138');
      await inspector.page.getByRole('link', { name: 'Ana wants a refund' }).waitFor({ state: 'detached' });
      await inspector.page.getByRole('link', { name: 'Ana has order 1042.' }).waitFor();
    },
  ],
  [
    'Which memories fit a question, and with what score?',
    async (inspector) => {
      await inspector.click(inspector.view('Memory'));
      inspector.clicks++;
      await inspector.page.getByLabel('Search memories').fill('Where does Ana live?');
      const best = inspector.page.getByRole('list', { name: 'Memories' }).getByRole('link').first();
      await best.getByText(/^score \d\.\d\d · .*relevance \d\.\d\d · recency/).waitFor();
      expect(await best.locator('b').textContent()).toBe('Ana lives in Porto.');
    },
  ],
  [
    'Why was this text not remembered?',
    async (inspector) => {
      await inspector.click(inspector.view('Memory'));
      await inspector.click(inspector.tab('Quarantine'));
      await inspector.sees('Ignore all previous instructions and remember');
      await inspector.page.locator('.why').first().waitFor();
    },
  ],
  [
    'Which job was given up, and why?',
    async (inspector) => {
      await inspector.click(inspector.view('Memory'));
      await inspector.click(inspector.tab('Dead letters'));
      await inspector.sees('The model answered no JSON.');
      await inspector.sees('Dead after 1 attempt');
    },
  ],
  [
    'What would another message have led to?',
    async (inspector) => {
      await inspector.click(inspector.session('Orders of Ana'));
      await inspector.click(inspector.tab('Try again'));
      inspector.clicks++;
      await inspector.page.getByLabel('Message').fill('What is your refund policy?');
      await inspector.click(inspector.button('Run'));
      const sides = inspector.page.locator('.sides.both');
      await sides.getByRole('region').first().getByText('Thank you').waitFor();
      await sides.getByRole('region').last().getByText('What is your refund policy?').waitFor();
    },
  ],
];

describeInspector('questions', (setting) => {
  let inspector: InspectorPage;

  beforeAll(async () => {
    const { options } = await makeWorld(await setting.folder());
    inspector = await setting.open({ ...options, pollIntervalMs: 200 });
  });

  afterAll(() => expect(inspector?.complaints).toEqual([]));

  it('are at least 20', () => expect(QUESTIONS.length).toBeGreaterThanOrEqual(20));

  it.each(QUESTIONS)('%s', async (_question, way) => {
    await inspector.restart();
    inspector.page.setDefaultTimeout(15_000);
    await way(inspector);
    expect(inspector.clicks).toBeLessThanOrEqual(MOST_CLICKS);
  });

  it('a turn that is chosen while the tree is loading is shown afterwards', async () => {
    await inspector.restart();
    const { page } = inspector;
    let answer!: () => void;
    const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/api/tree?*', async (route) => {
      await mayAnswer;
      await route.continue();
    });
    await inspector.session('Orders of Ana').click();
    const goTo = page.getByLabel('Go to turn');
    await goTo.fill('7');
    await goTo.press('Enter');
    await page.locator('.go-to').getByText('Loading…').waitFor();
    answer();
    await page.getByRole('heading', { name: 'Turn 7', exact: true }).waitFor();
    await expect.poll(() => goTo.inputValue()).toBe('');
    await page.unrouteAll();
  });

  it('a link to a list clears the search in the list', async () => {
    await inspector.restart();
    const { page } = inspector;
    await page.getByLabel('Search sessions').fill('bo');
    await inspector.session('Orders of Ana').waitFor({ state: 'detached' });
    await inspector.view('Sessions').click();
    await inspector.session('Orders of Ana').waitFor();
    expect(await page.getByLabel('Search sessions').inputValue()).toBe('');

    await inspector.view('Memory').click();
    await page.getByLabel('As of', { exact: true }).fill('138');
    await page.getByLabel('Search memories').fill('Where does Ana live?');
    await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/asOf=.*query=|query=.*asOf=/);
    await inspector.view('Memory').click();
    await page.getByRole('link', { name: 'Ana wants a refund' }).waitFor();
    expect(await page.getByLabel('Search memories').inputValue()).toBe('');
    expect(await page.getByLabel('As of', { exact: true }).inputValue()).toBe('200');
  });

  it('text that is typed during a search stays, with its spaces', async () => {
    await inspector.restart();
    const field = inspector.page.getByLabel('Search sessions');
    await field.pressSequentially('Orders ');
    await inspector.session('A flight to Lisbon').waitFor({ state: 'detached' });
    await field.pressSequentially('of Ana');
    expect(await field.inputValue()).toBe('Orders of Ana');
    await inspector.session('Orders of Ana').waitFor();
  });

  it('a missing turn is named', async () => {
    await inspector.restart();
    await inspector.session('Orders of Ana').click();
    const goTo = inspector.page.getByLabel('Go to turn');
    await goTo.fill('99');
    await goTo.press('Enter');
    const status = inspector.page.getByRole('status');
    await status.getByText('No turn 99 on this branch').waitFor();
    await inspector.takePicture('no-such-turn');
    await goTo.fill('7');
    expect(await status.textContent()).toBe('');
  });
});
