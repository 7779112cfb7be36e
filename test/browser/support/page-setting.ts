/** What the tests of the chat page share: one browser, and one server where a test needs no other. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { offlineModel, type SupportModel } from '../../../samples/support/models/choose-model.ts';
import type { RunningServer } from '../../../samples/support/server/start-server.ts';
import { ChatPage, type Look } from './chat-page.ts';
import { findBrowser, NO_BROWSER } from './find-browser.ts';
import { sharedBrowser } from './shared-browser.ts';
import { serve, type ServeOptions } from './sample-in-process.ts';

const PAGE = fileURLToPath(new URL('../../../dist/support-page/index.html', import.meta.url));
const PAGE_CONFIG = fileURLToPath(new URL('../../../samples/support/page/vite.config.ts', import.meta.url));

const hasBrowser = findBrowser() !== undefined;
if (!hasBrowser) console.warn(`The browser tests are skipped. ${NO_BROWSER}`);

export interface Setting {
  /** The server that the tests of the file share. */
  readonly url: string;
  /** A browser of its own, with nothing remembered. */
  open(options?: { url?: string; place?: string } & Look): Promise<ChatPage>;
  /** A server of the test's own, on an empty folder. It is stopped after the test. */
  serve(answering?: SupportModel, options?: ServeOptions): Promise<RunningServer>;
  /** An empty folder that is removed after the test. */
  folder(): Promise<string>;
  /** Called after the test. */
  after(work: () => unknown): void;
}

export function describePage(name: string, tests: (setting: Setting) => void): void {
  describe.skipIf(!hasBrowser)(name, () => {
    let browser: Browser;
    let server: RunningServer;
    let home: string;
    const atEnd: (() => unknown)[] = [];

    beforeAll(async () => {
      // `npm run test:slow` builds the page before; this is for running a file alone.
      if (!existsSync(PAGE)) {
        const { build } = await import('vite');
        await build({ configFile: PAGE_CONFIG, logLevel: 'warn' });
      }
      home = await mkdtemp(join(tmpdir(), 'support-sample-'));
      server = await serve(home, offlineModel(0));
      browser = await sharedBrowser();
    });

    afterEach(async () => {
      await Promise.all(browser.contexts().map((context) => context.close()));
      for (const work of atEnd.splice(0).toReversed()) await work();
    });

    afterAll(async () => {
      await server?.stop();
      await rm(home, { recursive: true, force: true });
    });

    const folder = async () => {
      const made = await mkdtemp(join(tmpdir(), 'support-sample-'));
      atEnd.push(() => rm(made, { recursive: true, force: true }));
      return made;
    };
    tests({
      get url() {
        return server.url;
      },
      open: ({ url = server.url, place, ...look } = {}) => ChatPage.open(browser, url, { place, ...look }),
      serve: async (answering = offlineModel(0), more = {}) => {
        const own = await serve(await folder(), answering, more);
        atEnd.push(() => own.stop());
        return own;
      },
      folder,
      after: (work) => void atEnd.push(work),
    });
  });
}
