const RANDOM_ID = /^(?:[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}|[\da-f]{64})$/;
const TIME_OR_COUNT = /^(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z|\d{1,8}(?:\.\d{1,20})?)$/;

/** The members of a snapshot, outside its state, that only the runtime writes. */
const GENERATED_PLACES: ReadonlySet<string> = new Set([
  'createdAt',
  'updatedAt',
  'heartbeatAt',
  'waitingSince',
  'resumption',
  'usage',
  'summaryUsage',
  'contextReport',
  ...['id', 'owner', 'leaseMs', 'generation', 'baseId', 'turn/messageAt', 'usage', 'userId'].map(
    (name) => `backgroundRun/${name}`,
  ),
  ...['owner', 'messages', 'event/id', 'event/invocationId'].map((name) => `sessionLog/${name}`),
]);

/** The kinds of the session records that the package itself writes. */
const GENERATED_KINDS: ReadonlySet<string> = new Set(['compaction', 'erasure', 'hold']);

/** Whether an id is random: a UUID or a hash. */
export function isRandomId(id: string): boolean {
  return RANDOM_ID.test(id);
}

/** Whether the runtime generated this text of a snapshot, outside its state, so that no rule has to search it. */
export function isGeneratedInSnapshot(text: string, path: readonly string[]): boolean {
  return [1, 2, 3].some((length) => GENERATED_PLACES.has(path.slice(0, length).join('/'))) && looksGenerated(text);
}

/** {@link isGeneratedInSnapshot} for session records of a kind; `undefined` if the rules have to search all of the record. */
export function generatedInRecord(kind: string): ((text: string) => boolean) | undefined {
  return GENERATED_KINDS.has(kind) ? looksGenerated : undefined;
}

function looksGenerated(text: string): boolean {
  return RANDOM_ID.test(text) || TIME_OR_COUNT.test(text);
}
