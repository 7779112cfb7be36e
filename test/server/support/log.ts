/** Captures the output of Genkit's logger, so that tests can check it and their output stays readable. */
import { inspect } from 'node:util';
import { logger } from 'genkit/logging';
import { afterEach, beforeEach } from 'vitest';

/** For each test: everything logged as an error, by any copy of Genkit in the process, as one text. */
export function catchErrorLog(): () => string {
  let lines: string[] = [];
  const error = (...args: unknown[]) => lines.push(args.map((arg) => inspect(arg, { depth: 6 })).join(' '));
  beforeEach(() => {
    lines = [];
    logger.init({ level: 'error', error, warn: () => {}, info: () => {}, debug: () => {} });
  });
  afterEach(() => logger.init(logger.defaultLogger));
  return () => lines.join('\n');
}
