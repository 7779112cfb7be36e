/** The inspector's page for a test that acts like a person. */
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { PAGE_TIMEOUT_MS, type Look } from '../support/chat-page.ts';

export class InspectorPage {
  readonly page: Page;
  /** Clicks, choices and fields filled since the last `restart`. */
  clicks = 0;
  /** Errors in the console, dialogs, and requests to any address but the server's. */
  readonly complaints: string[] = [];
  /** Paths of the requests of the API. */
  readonly requests: string[] = [];
  /** Paths of all requests. */
  readonly all: string[] = [];

  private constructor(page: Page, origin: string) {
    this.page = page;
    page.on('pageerror', ({ message }) => this.complaints.push(message));
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text());
    });
    page.on('dialog', (dialog) => {
      this.complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      const url = request.url();
      this.all.push(new URL(url).pathname);
      if (!/^(data|blob):/.test(url) && !url.startsWith(origin)) this.complaints.push(url);
      if (url.startsWith(`${origin}/api/`)) this.requests.push(new URL(url).pathname.slice('/api/'.length));
    });
  }

  /** @param address With a one-time token. */
  static async open(
    browser: Browser,
    address: string,
    { colorScheme = 'light', width = 1440, height = 900, place = '' }: Look & { place?: string } = {},
  ): Promise<InspectorPage> {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    context.setDefaultTimeout(PAGE_TIMEOUT_MS);
    const inspector = new InspectorPage(await context.newPage(), new URL(address).origin);
    await inspector.page.goto(`${address}${place}`);
    return inspector;
  }

  /** Goes to the list of sessions, the first view. */
  async restart(): Promise<void> {
    await this.goTo('#/sessions');
    await this.page.getByRole('list', { name: 'Sessions' }).waitFor();
    this.clicks = 0;
  }

  async goTo(hash: string): Promise<void> {
    await this.page.evaluate((place) => {
      location.hash = place;
    }, hash);
  }

  async click(what: Locator): Promise<void> {
    this.clicks++;
    await what.click();
  }

  async goToTurn(number: number): Promise<void> {
    this.clicks++;
    await this.page.getByLabel('Go to turn').fill(String(number));
    await this.page.keyboard.press('Enter');
    await this.page.getByRole('heading', { name: `Turn ${number}`, exact: true }).waitFor();
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' });
  }

  tab(name: string): Locator {
    return this.page.getByRole('tab', { name, exact: true });
  }

  /** A box of the tree. */
  box(name: string): Locator {
    return this.page.getByRole('treeitem', { name: new RegExp(`^${name},`) });
  }

  session(name: string | RegExp): Locator {
    return this.page.getByRole('list', { name: 'Sessions' }).getByRole('link', { name });
  }

  view(name: 'Sessions' | 'Runs' | 'Memory'): Locator {
    return this.page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name });
  }

  get detail(): Locator {
    return this.page.getByRole('region', { name: 'Snapshot' });
  }

  /** Waits for a visible text. */
  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  elements(): Promise<number> {
    return this.page.evaluate(() => document.querySelectorAll('*').length);
  }

  overflow(): Promise<number> {
    return this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  }

  /** For people: `SCREENSHOT_DIR` names the folder. */
  async takePicture(name: string, { colorScheme = 'light', width = 1440, height = 900 }: Look = {}): Promise<void> {
    const folder = process.env.SCREENSHOT_DIR;
    if (!folder) return;
    await this.page.emulateMedia({ colorScheme });
    await this.page.setViewportSize({ width, height });
    await this.page.screenshot({ path: join(folder, `inspector-${name}.png`), animations: 'disabled' });
  }
}
