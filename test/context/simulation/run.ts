// Plays the simulation of its arguments, and exits with 1 when a window was wrong: for mutants, which run in a process of their own.
import { simulate } from './simulate.ts';

const [seed, sessions] = process.argv.slice(2).map(Number);
const { violations, ...figures } = await simulate(seed ?? 1, sessions ?? 10);
for (const line of violations.slice(0, 8)) console.log(line);
console.log(JSON.stringify(figures));
process.exit(violations.length > 0 ? 1 : 0);
