import type { ActionContext, GenerationUsage, MessageData } from 'genkit';
import { isAborted, logWarning, quote } from '../../errors.ts';
import { sumUsage } from '../../store/list/session-summary.ts';
import type { RecordStore, SessionRecord } from '../../store/contract.ts';
import { MessageLog } from '../../session/log/message-log.ts';
import { beginning } from '../../session/log/transcript.ts';
import {
  CHAIN_KEY,
  COMPACTION_KIND,
  EMPTY_CHAIN,
  parseChain,
  parseRecords,
  withRecord,
  MOST_CHARACTERS,
  type Chain,
  type CompactionRecord,
} from './record.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import type { CompactionPlan } from './summarize.ts';
import { transcript, type Summarized, type Summarizer } from './summarizer.ts';

export interface SessionCompactionsOptions {
  readonly sessionId: string;
  readonly records: RecordStore;
  /** The context of the session's caller: names the tenant. */
  readonly context: ActionContext | undefined;
  readonly plan: CompactionPlan;
  readonly countTokens: (message: MessageData) => number;
  readonly countText: (text: string) => number;
  /** Milliseconds since 1970. Default: `Date.now`. */
  readonly now?: () => number;
}

/** A turn that has been saved. */
export interface CompactionTurn {
  /** The session's messages. */
  readonly messages: readonly MessageData[];
  /** The snapshot that was saved; `undefined` without a store. */
  readonly snapshotId: string | undefined;
  readonly summarizer: Summarizer;
  /** Compact whatever the counts are: a topic has ended, or the application asked for it. */
  readonly isForced?: boolean;
}

/** Reads the record of a session's newest summaries. */
export async function readChainRecord({
  records,
  sessionId,
  context,
}: Pick<SessionCompactionsOptions, 'records' | 'sessionId' | 'context'>): Promise<readonly SessionRecord[]> {
  const of = { sessionId, kind: COMPACTION_KIND, keys: [CHAIN_KEY] };
  return records.readRecords({ ...of, ...(context && { context }) });
}

/** How long a lease lasts beyond the timeout of the summarizer. */
const LEASE_MARGIN_MS = 5_000;
const FIRST_BACK_OFF_MS = 10_000;
const LONGEST_BACK_OFF_MS = 15 * 60_000;
/** What a model gives as its `finishReason` when its answer is not whole. */
const UNFINISHED = new Set<string | undefined>(['length', 'blocked', 'other']);

/**
 * The summaries of one session as this process knows them. Makes new ones.
 *
 * The right to write the next summary is a lease in the session record of the summaries, so only one process summarizes a range. No turn
 * waits for the lease.
 */
export class SessionCompactions {
  readonly #options: SessionCompactionsOptions;
  readonly #owner = globalThis.crypto.randomUUID();
  readonly #now: () => number;
  #chain: Chain = EMPTY_CHAIN;
  #archived: readonly CompactionRecord[] | undefined;
  /** `undefined`: not read yet; `null`: there is no such record. */
  #revision: string | null | undefined;
  #reading: Promise<void> | undefined;
  /** The last snapshot that this process saved or saw. */
  #leafId: string | undefined;
  #log: MessageLog | undefined;
  #running: Promise<void> | undefined;
  #next: CompactionTurn | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** The usage of this process's summarizer calls that is not in the chain yet. */
  #unwritten: GenerationUsage | undefined;

  constructor(options: SessionCompactionsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * Reads the summaries, unless this process knows the newest ones.
   *
   * @param leafId The snapshot that the session continues from. If it is not the last one that this process saved, another process had a
   *   turn and may have written a summary. It may also have if another process held the lease at the last read.
   * @param prefetched The result of {@link readChainRecord}, begun together with the read of the session. Default: the record is read now.
   * @returns Whether they were read.
   */
  async load(leafId: string | undefined, prefetched?: Promise<readonly SessionRecord[]>): Promise<boolean> {
    const { lease } = this.#chain;
    const isOthers = lease !== undefined && lease.owner !== this.#owner;
    if (this.#revision !== undefined && leafId === this.#leafId && !isOthers) return false;
    this.#leafId = leafId;
    await this.#read(this.isKnown ? undefined : prefetched);
    return true;
  }

  /** Reads the summaries again: another process may have finished one since. Returns whether the record has changed. */
  async reload(): Promise<boolean> {
    const before = this.#revision;
    await this.#read();
    return this.#revision !== before;
  }

  /** Whether this process has read the summaries, or written one. */
  get isKnown(): boolean {
    return this.#revision !== undefined;
  }

  /** The log of these messages. Keeps the hashes of the previous log. */
  logOf(messages: readonly MessageData[]): MessageLog {
    return (this.#log = MessageLog.of(messages, this.#log));
  }

  /** The summary that covers most of the log without a message at or after `before`. */
  inUse(log: MessageLog, before: number = log.length): CompactionRecord | undefined {
    return newest(this.#chain.records, log, before) ?? newest(this.#archived ?? [], log, before);
  }

  /** The usage of the session's summaries, of all processes. */
  get usage(): GenerationUsage | undefined {
    return this.#chain.usage;
  }

  /** Makes the summaries that are due after a turn, in the background. */
  turnEnded(turn: CompactionTurn): void {
    this.#leafId = turn.snapshotId;
    if (turn.isForced || this.#isDue(this.logOf(turn.messages))) this.#start(turn);
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#start({ ...turn, isForced: true }), this.#options.plan.idleMs);
    this.#idle.unref();
  }

  /**
   * Makes the summary of all turns that have ended, now. Returns whether it made one.
   *
   * @throws The error of the summarizer or of the store; during the back-off after one, an error that says when it is tried again.
   */
  async compact(turn: CompactionTurn): Promise<boolean> {
    while (this.#running) await this.#running;
    const hasMade = await this.#begin({ ...turn, isForced: true });
    const { failure } = this.#chain;
    if (failure && isAhead(failure.notBefore, this.#now()) && this.#range(this.logOf(turn.messages))) {
      const time = new Date(failure.notBefore).toISOString();
      throw new Error(`The last summary failed; it is tried again after ${time}.`);
    }
    return hasMade;
  }

  /** Resolves when no summary is being made. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** Stops the timer. */
  close(): void {
    clearTimeout(this.#idle);
    this.#idle = undefined;
  }

  #isDue(log: MessageLog): boolean {
    const { everyTurns, everyMessages, everyTokens } = this.#options.plan;
    const from = this.inUse(log)?.to ?? 0;
    const to = this.#endOf(log);
    if (to <= from) return false;
    if (to - from >= everyMessages || turnsBetween(log, from, to).length >= everyTurns) return true;
    return everyTokens < Infinity && this.#tokens(log, from, to) >= everyTokens;
  }

  #start(turn: CompactionTurn): void {
    if (this.#running) this.#next = turn;
    else {
      this.#begin(turn).catch((error: unknown) => {
        const session = `Session ${quote(this.#options.sessionId)}`;
        logWarning(`${session} was not compacted; it is tried again later.`, error);
      });
    }
  }

  #begin(turn: CompactionTurn): Promise<boolean> {
    const run = this.#run(turn);
    const end = () => {
      this.#running = undefined;
      const next = this.#next;
      this.#next = undefined;
      if (next) this.#start(next);
    };
    this.#running = run.then(end, end);
    return run;
  }

  /**
   * If a summary is due, makes one after the other until all turns are covered, or another process holds the lease. Returns whether it made
   * one.
   */
  async #run(turn: CompactionTurn): Promise<boolean> {
    if (this.#revision === undefined) await this.#read();
    if (!this.inUse(this.logOf(turn.messages)) && this.#chain.archives > 0) await this.#readArchives();
    // A call of the summarizer reads a limited range. Further calls follow up to the last turn, to cover messages dropped meanwhile.
    for (let hasMade = false; ;) {
      const log = this.logOf(turn.messages);
      if (!turn.isForced && !hasMade && !this.#isDue(log)) return hasMade;
      const previous = this.inUse(log);
      const range = this.#range(log);
      if (!range) return hasMade;
      try {
        if (!(await this.#takeLease(turn))) return hasMade;
        // Another process may have covered the range before the lease was taken.
        if (this.inUse(log) !== previous) continue;
        if (!(await this.#summarize(turn, log, range, previous))) return hasMade;
      } catch (error) {
        await this.#backOff(turn);
        throw error;
      }
      hasMade = true;
    }
  }

  /** The messages before it may be summarized: the turns that have ended, without the newest `keepTurns`. */
  #endOf(log: MessageLog): number {
    const { keepTurns } = this.#options.plan;
    const end = log.completeTo;
    return keepTurns === 0 ? end : (turnsBetween(log, 0, end).at(-keepTurns) ?? 0);
  }

  /** The next messages to summarize: whole turns, as many as one call may read. */
  #range(log: MessageLog): { from: number; to: number } | undefined {
    const from = this.inUse(log)?.to ?? 0;
    const end = this.#endOf(log);
    if (end <= from) return undefined;
    const ends = [...turnsBetween(log, from, end).filter((start) => start > from), end];
    let to = from;
    let tokens = 0;
    for (const next of ends) {
      tokens += this.#tokens(log, to, next);
      if (to > from && tokens > this.#options.plan.maxInputTokens) break;
      to = next;
    }
    return { from, to };
  }

  async #summarize(
    turn: CompactionTurn,
    log: MessageLog,
    range: { readonly from: number; readonly to: number },
    previous: CompactionRecord | undefined,
  ): Promise<boolean> {
    const { plan, countText } = this.#options;
    const earlier = log.turnStarts.filter((start) => start < range.from);
    const readFrom =
      plan.overlapTurns === 0 ? range.from : (earlier.at(-plan.overlapTurns) ?? earlier[0] ?? range.from);
    const messages = log.messages.slice(previous ? readFrom : 0, range.to);
    const asked = await this.#ask(turn.summarizer, previous?.text, messages);
    const text = cutToTokens(asked.text, plan.maxTokens, countText);
    const usage = sumUsage([asked.usage]);
    const record: CompactionRecord = {
      from: range.from,
      to: range.to,
      sha256: log.prefixHash(range.to),
      previous: previous?.sha256 ?? null,
      text,
      model: plan.model,
      tokens: countText(text),
      ...(usage && { usage }),
      ...(range.to === this.#endOf(log) && turn.snapshotId !== undefined && { leafId: turn.snapshotId }),
      createdAt: new Date(this.#now()).toISOString(),
    };
    const { chain, archive } = withRecord(this.#chain, record);
    if (archive.length > 0) await this.#writeArchive(chain.archives, archive);
    return this.#write(chain, turn);
  }

  /** @throws When the summarizer fails, is too slow, or answers no whole summary. */
  async #ask(
    summarizer: Summarizer,
    previous: string | undefined,
    messages: readonly MessageData[],
  ): Promise<Summarized> {
    const { maxTokens, timeoutMs } = this.#options.plan;
    try {
      const text = transcript(previous, messages);
      const request = { previous, messages, text, maxTokens };
      const ask = async (abortSignal: AbortSignal) => summarizer({ ...request, abortSignal });
      const answer: unknown = await withinTime('The summarizer', timeoutMs, undefined, ask);
      const summary = (typeof answer === 'string' ? { text: answer } : (answer ?? {})) as Summarized;
      // An answer that can't be used costs tokens, too.
      this.#unwritten = sumUsage([this.#unwritten, summary.usage]);
      if (typeof summary.text !== 'string' || summary.text.trim() === '')
        throw new Error('The summarizer returned no text.');
      if (UNFINISHED.has(summary.finishReason)) {
        throw new Error(
          `The summary is incomplete: finishReason is '${summary.finishReason}'. Raise maxTokens of summarize if it is 'length'.`,
        );
      }
      return summary;
    } catch (error) {
      throw new Error('The summarizer failed.', { cause: error });
    }
  }

  /** Notes a failure, in this process first: the store may refuse the note as well. */
  async #backOff(turn: CompactionTurn): Promise<void> {
    const attempts = (this.#chain.failure?.attempts ?? 0) + 1;
    const wait = Math.min(FIRST_BACK_OFF_MS * 2 ** (attempts - 1), LONGEST_BACK_OFF_MS);
    const { lease: _, ...chain } = this.#chain;
    this.#chain = { ...chain, failure: { attempts, notBefore: this.#now() + wait } };
    // Without a revision this would create a record, also for a session that was deleted meanwhile.
    if (this.#revision) await this.#write(this.#chain, turn).catch(() => false);
  }

  /** Takes or renews the lease. Returns whether this process may write the next record. */
  async #takeLease(turn: CompactionTurn): Promise<boolean> {
    for (let attempt = 0; attempt < 2; attempt++) {
      const { lease, failure } = this.#chain;
      const now = this.#now();
      const leaseMs = this.#options.plan.timeoutMs + LEASE_MARGIN_MS;
      if (failure && isAhead(failure.notBefore, now)) return false;
      if (lease && lease.owner !== this.#owner && isAhead(lease.until, now, leaseMs)) return false;
      const until = now + leaseMs;
      if (await this.#write({ ...this.#chain, lease: { owner: this.#owner, until } }, turn)) return true;
      await this.#read();
    }
    return false;
  }

  /** Writes the chain. Returns false if another process has changed it since it was read, or if the session is gone. */
  async #write(changed: Chain, { snapshotId }: CompactionTurn): Promise<boolean> {
    const { records, sessionId, context } = this.#options;
    const unwritten = this.#unwritten;
    const usage = sumUsage([changed.usage, unwritten]);
    const chain: Chain = { ...changed, ...(usage && { usage }) };
    // If the outcome of the write stays unknown, its usage must not be added again by the next write.
    this.#unwritten = undefined;
    try {
      this.#revision = await records.writeRecord({
        sessionId,
        kind: COMPACTION_KIND,
        key: CHAIN_KEY,
        value: structuredClone(chain) as never,
        expectedRevision: this.#revision ?? null,
        // Only the lease needs this check. Later writes need the lease's revision, which is deleted with the session.
        ...(snapshotId !== undefined && chain.lease && { ifSnapshot: snapshotId }),
        ...(context && { context }),
      });
      this.#chain = chain;
      return true;
    } catch (error) {
      if (!isAborted(error)) throw error;
      this.#unwritten = unwritten;
      this.#revision = undefined;
      return false;
    }
  }

  async #writeArchive(number: number, archive: readonly CompactionRecord[]): Promise<void> {
    const { records, sessionId, context } = this.#options;
    const key = `archive-${number}`;
    const value = structuredClone({ version: 1, records: archive }) as never;
    await records.writeRecord({ sessionId, kind: COMPACTION_KIND, key, value, ...(context && { context }) });
    if (this.#archived) this.#archived = [...this.#archived, ...archive];
  }

  #read(prefetched?: Promise<readonly SessionRecord[]>): Promise<void> {
    this.#reading ??= this.#readChain(prefetched).finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readChain(prefetched = readChainRecord(this.#options)): Promise<void> {
    const before = this.#revision;
    const [record] = await prefetched;
    // This process has written meanwhile: its chain is newer than the one that was read.
    if (this.#revision !== before) return;
    this.#chain = parseChain(record?.value);
    this.#revision = record?.revision ?? null;
  }

  /** Reads the archived summaries, for a branch that no summary of the chain covers. */
  async #readArchives(): Promise<void> {
    const { records, sessionId, context } = this.#options;
    const all = await records.readRecords({ sessionId, kind: COMPACTION_KIND, ...(context && { context }) });
    this.#archived = all.filter(({ key }) => key !== CHAIN_KEY).flatMap(({ value }) => parseRecords(value));
  }

  #tokens(log: MessageLog, from: number, to: number): number {
    let sum = 0;
    for (let i = from; i < to; i++) sum += this.#options.countTokens(log.messages[i]!);
    return sum;
  }
}

/** The record that covers most messages of the log. */
function newest(records: readonly CompactionRecord[], log: MessageLog, before: number): CompactionRecord | undefined {
  return records
    .filter(({ to }) => to <= before)
    .toSorted((a, b) => b.to - a.to)
    .find(({ to, sha256 }) => log.prefixHash(to) === sha256);
}

/** The starts of the turns that begin at `from` or later, and before `to`. */
function turnsBetween(log: MessageLog, from: number, to: number): number[] {
  return log.turnStarts.filter((start) => start >= from && start < to);
}

/** Cuts the text to at most `maxTokens`. */
function cutToTokens(text: string, maxTokens: number, countText: (text: string) => number): string {
  // A token has 16 characters at most, so a text with more than that for each token is cut before it is counted.
  let shorter = beginning(text, Math.min(maxTokens * 16, MOST_CHARACTERS));
  for (let tokens = countText(shorter); tokens > maxTokens; tokens = countText(shorter)) {
    shorter = beginning(shorter, Math.floor((shorter.length * maxTokens) / (tokens + 1)));
  }
  return shorter;
}

/** Whether a stored time is still to come. A time further away than `mostMs` is from a process whose clock was wrong. */
function isAhead(time: number, now: number, mostMs = LONGEST_BACK_OFF_MS): boolean {
  return time > now && time <= now + mostMs;
}
