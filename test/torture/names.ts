/** Every reliability test by its name, and what it is about. A test has the name in its title. */
export const NAMES: Readonly<Record<string, string>> = {
  D1: 'crash-kill',
  D2: 'flush order',
  D3: 'crash points',
  D4: 'n-th fault',
  D5: 'bad files',
  C1: 'atomic update',
  C2: 'terminal state',
  C3: 'one session',
  C4: 'leaf rule',
  I1: 'hostile ids',
  I2: 'tenant fence',
  I3: 'private files',
  F1: 'values',
  F2: 'outage',
  F3: 'rewrites',
  F4: 'size',
  F5: 'contention',
  F6: 'missing piece',
  J1: 'patch fuzz',
  J2: 'patch size',
  J3: 'strict apply',
  R1: 'detach',
  R2: 'worker death',
  R3: 'abort',
  R4: 'store failure',
  R5: 'throw corpus',
  R6: 'soak',
  S1: 'forged resume',
  S2: 'client input',
  H1: 'HTTP',
  X1: 'simulation',
  model: 'random tapes against the reference model',
};

/** The tapes have no name of their own: they are what stands under this one in the kit. */
const TAPES = 'random tapes the store and the reference model agree';

/** Matches the titles of the tests with these names. */
export function patternOf(names: readonly string[]): RegExp {
  const patterns = names.map((name) => (name === 'model' ? TAPES : `\\b${name}\\b`));
  return new RegExp(patterns.join('|'));
}

/** The names of a test, by its full title. */
export function namesOf(title: string): string[] {
  return Object.keys(NAMES).filter((name) => patternOf([name]).test(title));
}
