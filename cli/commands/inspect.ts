import type { Command } from 'commander';
import { Problem } from '../failures.ts';

/** `inspect STORE`: the page is loaded by this command only. */
export function addInspect(program: Command): void {
  program
    .command('inspect <store>')
    .description('opens a page that shows the sessions of a store')
    .action(async () => {
      throw new Problem(
        'This version has no inspector yet. sessions list, show, tree and diff show the same in the terminal.',
      );
    });
}
