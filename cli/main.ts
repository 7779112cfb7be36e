#!/usr/bin/env node
import { nodeIo } from './io.ts';
import { run } from './run.ts';

const io = nodeIo();
const code = await run(process.argv.slice(2), io);
// Ends the command even if an application's module has opened something, for example a server.
await io.flush();
process.exit(io.signal.aborted ? Math.max(code, Number(io.signal.reason)) : code);
