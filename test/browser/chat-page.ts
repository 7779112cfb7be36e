/** The chat page as a person sees it: what they can do, and what is on the screen. */
import { expect } from 'vitest';
import type { Browser, Page } from 'playwright-core';

export class ChatPage {
  readonly page: Page;
  /** Errors in the console, and requests to any address but the server's. */
  readonly complaints: string[] = [];
  /** While the server is away, failed requests are no complaint. */
  serverIsAway = false;

  private constructor(page: Page, url: string) {
    this.page = page;
    page.on('pageerror', ({ message }) => this.complaints.push(message));
    page.on('console', (message) => {
      if (message.type() === 'error' && !this.serverIsAway) this.complaints.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith('data:')) this.complaints.push(request.url());
    });
  }

  static async open(browser: Browser, url: string, place = ''): Promise<ChatPage> {
    const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
    const chat = new ChatPage(await context.newPage(), url);
    await chat.page.goto(`${url}/${place}`);
    return chat;
  }

  /** Types a message, sends it with Enter, and waits for the whole reply. */
  async say(said: string, answered: string): Promise<void> {
    const number = (await this.page.getByRole('article').count()) + 1;
    await this.page.getByLabel('Your message').fill(said);
    await this.page.getByLabel('Your message').press('Enter');
    const turn = this.page.getByRole('article', { name: `Turn ${number}`, exact: true });
    await turn.locator('.reply', { hasText: answered }).waitFor();
    await this.settled(said);
  }

  /** Waits until the turn that answers `said` is saved and shown, in the picture too. */
  async settled(said: string): Promise<void> {
    await this.page.locator('[role=log][aria-busy=false]').waitFor();
    await this.page.locator('.box[aria-current]', { hasText: said }).waitFor();
  }

  async goBackTo(turn: number): Promise<void> {
    await this.page.getByRole('button', { name: `Go back to turn ${turn}`, exact: true }).click();
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

  async selectInTree(said: string): Promise<void> {
    await this.page.locator('.box', { hasText: said }).click();
  }
}
