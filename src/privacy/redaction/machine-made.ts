/** A time, a random id, or a hash, as the runtime writes them. */
const MADE_TEXT =
  /^(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z|[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}|[\da-f]{64})$/;

/** Members of snapshots and session records that hold counts. */
const COUNT = /(?:Tokens|Characters|Images|Videos|AudioFiles|Ms|^generation|^messageAt|^calls|^items|^to|^from)$/;

/** Whether the runtime made the text, or the number as text, so that no rule has to search it. Never asked for what is in a state. */
export function isMachineMade(text: string, label: string | undefined): boolean {
  return MADE_TEXT.test(text) || (label !== undefined && COUNT.test(label) && /^\d{1,8}(?:\.\d{1,20})?$/.test(text));
}
