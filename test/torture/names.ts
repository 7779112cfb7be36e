/** Every family of reliability tests, and what it is about. The title of a test of the family begins with the name and a colon. */
export const NAMES: Readonly<Record<string, string>> = {
  'crash-kill': 'writers killed at random points',
  'flush order': 'a file is on the disk before the save is acknowledged',
  'crash points': 'every prefix of the operations of a save',
  'n-th fault': 'a disk that fails at each n-th operation',
  'bad files': 'foreign and broken files among good ones',
  'lock under faults': 'system calls that fail while a lock is taken',
  'damaged index': 'logs that are cut, swapped or garbled',
  'atomic update': 'concurrent increments of one snapshot',
  'terminal state': 'races of abort, complete, fail and heartbeat',
  'one session': 'several writers of one session',
  'leaf rule': 'random trees, equal and skewed clocks',
  'hostile ids': 'ids that are paths, patterns, or nearly equal',
  'tenant fence': 'hostile tenant prefixes',
  'private files': 'access rights and symbolic links',
  values: 'any JSON value, on every way into the store',
  coverage: 'each message is sent, in one summary, or reported as dropped',
  survival: 'a long conversation with a model that accepts little',
  'same log': 'sessions with summaries beside sessions without',
  'same range once': 'processes that summarize the same messages',
  'safe cut': 'windows of random histories, against the rules of providers',
  outage: 'a database that is away for a while',
  rewrites: 'random rewrites of snapshots',
  size: 'states larger than a document or a commit',
  contention: 'many clients, one session',
  erasure: 'erasures that are killed after each change of the medium',
  'damaged ciphertext': 'ciphertexts that are flipped, cut or swapped',
  'redaction at kills': 'processes whose stores redact are killed; no value is on the medium',
  'missing piece': 'any one document deleted',
  'copy under kills': 'a copy between two stores, killed and started again',
  'memory once': 'workers that learn from the same sessions, or are killed while they do',
  'memory fence': 'operations in scopes whose names are near to each other',
  poison: 'attempts to make a memory instruct, authorize or reach others',
  'patch fuzz': 'random pairs of states',
  'patch size': 'patches beside another library',
  'strict apply': 'malformed patches',
  detach: 'turns that go on in the background',
  'worker death': 'background runs whose process is killed',
  abort: 'turns that are stopped',
  'store failure': 'stores that fail or hang',
  'throw corpus': 'any thrown value',
  soak: 'ten thousand turns',
  'forged resume': 'approvals that no tool asked for',
  'client input': 'inputs that clients must not send',
  HTTP: 'answers that leak nothing',
  simulation: 'a simulated store and clock',
  model: 'random tapes against the reference model',
  options: 'the whole kit with other options of the stores',
};

/** The title of the kit's tests with random tapes has no prefix. */
const TAPES = 'random tapes the store and the reference model agree';

/** Matches the titles of the tests with these names. */
export function patternOf(names: readonly string[]): RegExp {
  const patterns = names.map((name) => (name === 'model' ? TAPES : `\\b${name}: `));
  return new RegExp(patterns.join('|'));
}

/** The names of a test, by its full title. */
export function namesOf(title: string): string[] {
  return Object.keys(NAMES).filter((name) => patternOf([name]).test(title));
}
