/** The test pages in a real browser, built with React 18 and 19. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { PAGE_TIMEOUT_MS } from '../../browser/support/chat-page.ts';
import { findBrowser } from '../../browser/support/find-browser.ts';
import { sharedBrowser } from '../../browser/support/shared-browser.ts';
import type { TestWindow } from '../page/main.tsx';
import { serveTeller, type Teller } from './teller.ts';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

const REACTS = {
  'React 19': {},
  'React 18': { react: path('../../../node_modules/react18'), 'react-dom': path('../../../node_modules/react-dom18') },
};

export interface Pages {
  readonly teller: Teller;
  /** Opens a page: in a browser of its own, or as another tab. */
  open(address: string, beside?: Page): Promise<Page>;
  /** Errors and warnings in the consoles. */
  readonly complaints: string[];
}

export function describePages(name: string, versions: (keyof typeof REACTS)[], tests: (pages: Pages) => void): void {
  describe.skipIf(!findBrowser()).each(versions)(`${name}, in %s`, (version) => {
    let browser: Browser;
    let folder: string;
    let teller: Teller;
    let complaints: string[] = [];

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'react-pages-'));
      await build({
        root: path('../page'),
        configFile: false,
        mode: 'development',
        logLevel: 'error',
        plugins: [react()],
        define: { 'process.env.NODE_ENV': '"development"' },
        resolve: {
          alias: {
            'genkitx-agents/client': path('../../../entries/client.ts'),
            'genkitx-agents/react': path('../../../entries/react.ts'),
            ...REACTS[version],
          },
        },
        build: { outDir: folder, emptyOutDir: true, minify: false, chunkSizeWarningLimit: 10_000 },
      });
      browser = await sharedBrowser();
      teller = await serveTeller({ pages: folder });
    });
    afterEach(async () => {
      await Promise.all(browser.contexts().map((context) => context.close()));
      complaints.length = 0;
    });
    afterAll(async () => {
      await teller?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const open = async (address: string, beside?: Page) => {
      const context: BrowserContext = beside?.context() ?? (await browser.newContext());
      context.setDefaultTimeout(PAGE_TIMEOUT_MS);
      const page = await context.newPage();
      page.setDefaultTimeout(10_000);
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      await page.goto(`${new URL(teller.url).origin}/${address}`);
      await page.locator('main').waitFor({ state: 'attached' });
      return page;
    };
    tests({
      get teller() {
        return teller;
      },
      open,
      complaints,
    });
  });
}

/** Runs a function in the page. */
export function inPage<T, Arg = undefined>(
  page: Page,
  work: (page: TestWindow, arg: Arg) => T,
  arg?: Arg,
): Promise<Awaited<T>> {
  return page.evaluate(`(${work.toString()})(window, ${JSON.stringify(arg)})`) as Promise<Awaited<T>>;
}
