/** Shared by the tests of the inspector's page: one browser, and inspectors behind real HTTP. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InspectorOptions } from 'genkitx-agents/inspector';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe } from 'vitest';
import { open as openInspector } from '../../inspector/support/open.ts';
import type { Look } from '../support/chat-page.ts';
import { findBrowser, NO_BROWSER } from '../support/find-browser.ts';
import { sharedBrowser } from '../support/shared-browser.ts';
import { InspectorPage } from './inspector-page.ts';

const PAGE = fileURLToPath(new URL('../../../dist/inspector/index.html.br', import.meta.url));
const PAGE_CONFIG = fileURLToPath(new URL('../../../ui/inspector/vite.config.ts', import.meta.url));

const hasBrowser = findBrowser() !== undefined;
if (!hasBrowser) console.warn(`The browser tests are skipped. ${NO_BROWSER}`);

export interface InspectorSetting {
  /** An empty folder that is removed at the end of the test file. */
  folder(): Promise<string>;
  /** Starts an inspector, and opens its page in a new browser context. Both end with the test file. */
  open(options: InspectorOptions, look?: Look & { place?: string }): Promise<InspectorPage>;
  /** The same, with a server that can be stopped and, with new keys, started again at its address. */
  openServed(options: InspectorOptions): Promise<{
    inspector: InspectorPage;
    stop: () => Promise<void>;
    /** Returns an address with a token. */
    start: () => Promise<string>;
  }>;
}

export function describeInspector(name: string, tests: (setting: InspectorSetting) => void): void {
  describe.skipIf(!hasBrowser)(name, () => {
    let browser: Browser;
    const ends: (() => Promise<void>)[] = [];

    beforeAll(async () => {
      // `npm run test:slow` builds the page before; this is for running a file alone.
      if (!existsSync(PAGE)) {
        const { build } = await import('vite');
        await build({ configFile: PAGE_CONFIG, logLevel: 'warn' });
      }
      browser = await sharedBrowser();
    });

    afterAll(async () => {
      await Promise.all(browser.contexts().map((context) => context.close()));
      await Promise.all(ends.map((end) => end()));
    });

    const openServed: InspectorSetting['openServed'] = async (options) => {
      let served = await openInspector(options);
      ends.push(() => served.close());
      return {
        inspector: await InspectorPage.open(browser, served.address()),
        stop: () => served.close(),
        start: async () => {
          served = await openInspector(options, Number(new URL(served.origin).port));
          return served.address();
        },
      };
    };

    tests({
      openServed,
      folder: async () => {
        const made = await mkdtemp(join(tmpdir(), 'inspector-'));
        ends.push(() => rm(made, { recursive: true, force: true }));
        return made;
      },
      open: async (options, look) => {
        const { address, close } = await openInspector(options);
        ends.push(close);
        return InspectorPage.open(browser, address(), look);
      },
    });
  });
}
