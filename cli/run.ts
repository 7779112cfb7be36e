import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { addDoctor } from './commands/doctor.ts';
import { addInspect } from './commands/inspect.ts';
import { addMemories } from './commands/memories/memories.ts';
import { addRuns } from './commands/runs.ts';
import { addSessions } from './commands/sessions/sessions.ts';
import { explain, OK, WRONG_USE } from './failures.ts';
import type { Io } from './io.ts';
import { safe } from './output/text.ts';

/**
 * Runs a command line.
 *
 * @param argv Without the names of Node and the script.
 * @returns The exit code: 0, 1 when the work found problems or failed, 2 for wrong arguments.
 */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  try {
    await commandLine(io).parseAsync([...argv], { from: 'user' });
    return OK;
  } catch (error) {
    if (io.signal.aborted) return Number(io.signal.reason);
    // Commander has written its own message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? OK : WRONG_USE;
    const { message, code } = explain(error);
    io.say(safe(message));
    return code;
  }
}

/** All commands. */
export function commandLine(io: Io): Command {
  const program = new Command('genkitx-agents')
    .description('Shows and removes the sessions, runs and memories of agents.')
    .version(packageVersion(), '-V, --version', 'prints the version')
    .exitOverride()
    .configureOutput({ writeOut: (text) => void io.print(text), writeErr: (text) => io.say(text.trimEnd()) })
    .showHelpAfterError('Add --help to see the arguments of the command.');
  addSessions(program, io);
  addRuns(program, io);
  addMemories(program, io);
  addDoctor(program, io);
  addInspect(program, io);
  return program;
}

/** The version of this package, whose manifest is one folder above both this file and the built command. */
function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
