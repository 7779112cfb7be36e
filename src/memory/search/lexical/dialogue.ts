import type { Memory } from '../../../store/memory/contract.ts';
import type { Posting, TermMatches } from './term-index.ts';

/** The distances of neighbours from a hit. */
const DISTANCES = [-1, 1, -2, 2];
/** The shares of a hit's score: those of its neighbours, one for each distance; that of the message after a question; its own. */
const SHARES = [0.6, 0.6, 0.4, 0.4, 0.9, 1];
/** Indexes into `SHARES`. The message after a question may be the answer. */
const [ANSWER_SHARE, OWN_SHARE] = [4, 5];
/** Multiplies the score of a message that is a question: the answer is in another message. */
const QUESTION_FACTOR = 0.8;
/** The end of a question. Emoji, quotes and other signs may follow. */
const QUESTION = /[?？؟]\P{L}*$/u;
/** The number of characters at the end of a message in which a question mark is searched. */
const END_CHARACTERS = 32;
/** The share of a session's best score that its found messages get. */
const SESSION_SHARE = 0.2;

/** Hits of a search, by their numbers. */
export interface SpreadHits extends Pick<TermMatches, 'scores' | 'postings'> {
  readonly hits: readonly number[];
}

/** A session with messages that are memories. */
interface DialogueSession {
  readonly number: number;
  /** The numbers of the memories, by the index of the message. */
  readonly messages: Map<number, Set<number>>;
}

/**
 * Whether a memory is a message stored word for word. Only messages have neighbours, because facts learned from one conversation are
 * unrelated.
 */
export function isMessage(memory: Memory): boolean {
  return memory['role'] !== undefined;
}

/** Whether a source is exactly one message of a session. */
function isOneMessage({ sessionId, from, to }: Memory['sources'][number]): boolean {
  return sessionId !== undefined && from !== undefined && to === from + 1;
}

/** The memories that are messages, by session and index. A memory is identified by its number in the search index. */
export class DialogueMap {
  readonly #sessions = new Map<string, DialogueSession>();
  /** By number, the positions of a memory in sessions. */
  readonly #positions: { readonly session: DialogueSession; readonly index: number }[][] = [];
  /** By number, whether a message is a question. */
  readonly #isQuestion: boolean[] = [];
  /**
   * For each memory its sessions and its neighbours: the number of sessions, each session's number, the number of neighbours, and for each
   * neighbour its number and an index into `SHARES`. One list for all memories is faster to read than a list for each.
   */
  readonly #around: number[] = [];
  /** By number, the start of a memory's part of `#around`. Cleared by each change. */
  #starts: (number | undefined)[] = [];
  // The lists below belong to the running search.
  /** By number, the score of a memory including its shares. */
  readonly #scores: number[] = [];
  /** By number, the largest score of a memory for the current term. */
  readonly #most: number[] = [];
  /** By number, whether a memory is a hit. */
  readonly #isHit: boolean[] = [];
  /** By the number of a session, its best score. */
  readonly #best: number[] = [];
  /** The numbers that the last search found. */
  #found: number[] = [];

  add(number: number, memory: Memory): void {
    this.#scores[number] = 0;
    this.#most[number] = 0;
    this.#isHit[number] = false;
    this.#dropSurroundings();
    const places = isMessage(memory) ? memory.sources.filter(isOneMessage) : [];
    this.#positions[number] = places.map(({ sessionId, from }) => {
      const session = this.#sessionOf(sessionId!);
      const there = session.messages.get(from!) ?? new Set();
      session.messages.set(from!, there.add(number));
      return { session, index: from! };
    });
    this.#isQuestion[number] = places.length > 0 && QUESTION.test(memory.text.slice(-END_CHARACTERS));
  }

  remove(number: number): void {
    this.#dropSurroundings();
    for (const { session, index } of this.#positions[number]!) session.messages.get(index)!.delete(number);
    this.#positions[number] = [];
  }

  /**
   * Gives the neighbours of each hit a share of the hit's score, because an answer seldom repeats the words of the question. For each term,
   * only the largest of a memory's own score and its shares counts, so that a word in every message does not add up. Found messages also
   * get a share of their session's best score.
   *
   * @returns The hits and the neighbours, with all scores by number.
   */
  spread({ hits, scores: ownScores, postings }: SpreadHits): { found: number[]; scores: number[] } {
    const [scores, isHit, best, around] = [this.#scores, this.#isHit, this.#best, this.#around];
    for (const one of this.#found) scores[one] = 0;
    for (const hit of hits) {
      isHit[hit] = true;
      let at = this.#startOf(hit);
      for (let left = around[at++]!; left > 0; left--) {
        const session = around[at++]!;
        best[session] = Math.max(best[session]!, ownScores[hit]!);
      }
    }
    const found: number[] = [];
    for (const posting of postings) {
      for (const one of this.#spreadTerm(posting)) {
        if (scores[one] === 0) found.push(one);
        scores[one]! += this.#most[one]!;
        this.#most[one] = 0;
      }
    }
    for (const one of found) {
      let ofSession = 0;
      let at = this.#startOf(one);
      for (let left = around[at++]!; left > 0; left--) ofSession = Math.max(ofSession, best[around[at++]!]!);
      const score = scores[one]! + SESSION_SHARE * ofSession;
      scores[one] = this.#isQuestion[one] ? QUESTION_FACTOR * score : score;
    }
    for (const hit of hits) isHit[hit] = false;
    best.fill(0);
    this.#found = found;
    return { found, scores };
  }

  /** Writes the scores of memories for a term to `#most`. Returns the numbers of the memories with a score. */
  #spreadTerm({ numbers, scores }: Posting): number[] {
    const [most, around] = [this.#most, this.#around];
    const found: number[] = [];
    for (let i = 0; i < numbers.length; i++) {
      const hit = numbers[i]!;
      if (!this.#isHit[hit]) continue;
      const start = this.#startOf(hit);
      let at = start + 1 + around[start]!;
      for (let left = around[at++]!; left > 0; left--) {
        const number = around[at++]!;
        const score = SHARES[around[at++]!]! * scores[i]!;
        if (most[number] === 0) found.push(number);
        if (score > most[number]!) most[number] = score;
      }
    }
    return found;
  }

  #startOf(number: number): number {
    const known = this.#starts[number];
    if (known !== undefined) return known;
    const positions = this.#positions[number]!;
    const neighbours = positions.flatMap(({ session, index }) =>
      DISTANCES.flatMap((distance, share) =>
        [...(session.messages.get(index + distance) ?? [])]
          .filter((neighbour) => neighbour !== number)
          .map((neighbour) => [neighbour, distance === 1 && this.#isQuestion[number] ? ANSWER_SHARE : share]),
      ),
    );
    const start = this.#around.push(positions.length) - 1;
    for (const { session } of positions) this.#around.push(session.number);
    this.#around.push(neighbours.length + 1, number, OWN_SHARE);
    for (const pair of neighbours) this.#around.push(...pair);
    return (this.#starts[number] = start);
  }

  #dropSurroundings(): void {
    this.#around.length = 0;
    this.#starts = [];
  }

  #sessionOf(id: string): DialogueSession {
    const known = this.#sessions.get(id);
    if (known) return known;
    const session = { number: this.#best.push(0) - 1, messages: new Map<number, Set<number>>() };
    this.#sessions.set(id, session);
    return session;
  }
}
