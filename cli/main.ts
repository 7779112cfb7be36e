#!/usr/bin/env node
import { nodeIo } from './io.ts';
import { run } from './run.ts';

const io = nodeIo();
const code = await run(process.argv.slice(2), io);
// What an application's module has opened, a server say, does not keep the command alive.
await io.flush();
process.exit(io.signal.aborted ? Math.max(code, Number(io.signal.reason)) : code);
