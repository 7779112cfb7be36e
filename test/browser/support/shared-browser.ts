import { chromium, type Browser } from 'playwright-core';
import { findBrowser } from './find-browser.ts';

let launched: Promise<Browser> | undefined;

/** One browser for all files of a worker, whose end it shares: a test closes its contexts, not the browser. */
export function sharedBrowser(): Promise<Browser> {
  return (launched ??= chromium.launch({ executablePath: findBrowser(), args: ['--no-sandbox'] }));
}
