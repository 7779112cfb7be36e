/** The chat page as a person sees it: what they can do, and what is on the screen. */
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Browser, Locator, Page } from 'playwright-core';
import type { Said } from './script.ts';

export interface Look {
  colorScheme?: 'dark' | 'light';
  width?: number;
  height?: number;
}

/** Of all that is waited for in a page. Playwright waits for 30 s, which a busy machine may need. */
export const PAGE_TIMEOUT_MS = 60_000;

export class ChatPage {
  readonly page: Page;
  readonly #url: string;
  /** Errors in the console, and requests to any address but the server's. */
  readonly complaints: string[] = [];
  /** While the server is away, failed requests are no complaint. */
  serverIsAway = false;

  private constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
    page.on('pageerror', ({ message }) => this.complaints.push(message));
    page.on('console', (message) => {
      if (message.type() === 'error' && !this.serverIsAway) this.complaints.push(message.text());
    });
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(url)) this.complaints.push(request.url());
    });
  }

  static async open(browser: Browser, url: string, look: { place?: string } & Look = {}): Promise<ChatPage> {
    const { place = '', colorScheme = 'light', width = 1440, height = 900 } = look;
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    context.setDefaultTimeout(PAGE_TIMEOUT_MS);
    const chat = new ChatPage(await context.newPage(), url);
    await chat.page.goto(`${url}/${place}`);
    return chat;
  }

  /** Another tab of the same browser, at the same place. */
  async openTab(): Promise<ChatPage> {
    const tab = new ChatPage(await this.page.context().newPage(), this.#url);
    await tab.page.goto(this.page.url());
    return tab;
  }

  get field(): Locator {
    return this.page.getByLabel('Your message');
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' });
  }

  turn(number: number): Locator {
    return this.page.getByRole('article', { name: `Turn ${number}`, exact: true });
  }

  /** Types a message and sends it with Enter. */
  async ask(text: string): Promise<void> {
    await this.field.fill(text);
    await this.field.press('Enter');
  }

  /** Sends a message, approves what it asks for, and waits for the whole reply. */
  async say(...[said, answered, approved]: Said): Promise<void> {
    const number = (await this.page.getByRole('article').count()) + 1;
    await this.ask(said);
    if (approved) await this.button('Approve').click();
    await this.turn(number).locator('.reply', { hasText: answered }).waitFor();
    await this.settled(said);
  }

  /** Waits until the turn that answers `said` is saved and shown, in the picture too. */
  async settled(said: string): Promise<void> {
    await this.page.locator('[role=log][aria-busy=false]').waitFor();
    await this.page.locator('.box[aria-current]', { hasText: said }).waitFor({ state: 'attached' });
  }

  async goBackTo(turn: number): Promise<void> {
    await this.button(`Go back to turn ${turn}`).click();
    await this.expectTurns(turn);
  }

  /** What the customer said on the branch that is shown. */
  async expectAsked(asked: string[]): Promise<void> {
    await this.expectTurns(asked.length);
    expect(await this.page.locator('.asked').allTextContents()).toEqual(asked);
  }

  async expectTurns(count: number): Promise<void> {
    await this.page.waitForFunction((wanted) => document.querySelectorAll('.turn').length === wanted, count);
  }

  /** Boxes and lines in the picture of the tree, and how many boxes lead to what is shown. */
  async tree(): Promise<{ boxes: number; lines: number; onPath: number }> {
    return {
      boxes: await this.page.locator('.box').count(),
      lines: await this.page.locator('.react-flow__edge').count(),
      onPath: await this.page.locator('.box[data-on-path=true]').count(),
    };
  }

  async expectTree(wanted: { boxes: number; lines: number; onPath: number }): Promise<void> {
    // A box appears before the way to what is shown leads through it.
    await expect.poll(() => this.tree()).toEqual(wanted);
  }

  async selectInTree(said: string): Promise<void> {
    await this.page.locator('.box', { hasText: said }).click();
  }

  /** For people: `SCREENSHOT_DIR` names the folder. */
  async takePicture(name: string, { colorScheme = 'light', width = 1440, height = 900 }: Look = {}): Promise<void> {
    const folder = process.env.SCREENSHOT_DIR;
    if (!folder) return;
    await this.page.emulateMedia({ colorScheme });
    await this.page.setViewportSize({ width, height });
    await this.page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
  }
}
