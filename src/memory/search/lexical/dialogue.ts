import type { Memory } from '../../../store/memory/contract.ts';

/** The distances of neighbours from a hit, and the shares of its score that they get. */
const DISTANCES = [-1, 1, -2, 2];
const SHARES = [0.5, 0.5, 0.25, 0.25];
/** The share of the best score of a session that its found messages get. */
const SESSION_SHARE = 0.2;

/** A session with messages that are memories. */
interface DialogueSession {
  readonly number: number;
  /** By index, the numbers of the memories. */
  readonly messages: Map<number, Set<number>>;
}

/** What stands around a memory, as numbers: looking at the sessions takes as long as the rest of a search. */
interface Surroundings {
  readonly sessions: readonly number[];
  readonly neighbours: readonly number[];
  /** The share of each neighbour. */
  readonly shares: readonly number[];
}

/** Whether a memory is a single message of a dialogue, as it was said. */
export function isMessage({ sources }: Memory): boolean {
  return sources.some(isPlace);
}

function isPlace({ sessionId, from, to }: Memory['sources'][number]): boolean {
  return sessionId !== undefined && from !== undefined && to === from + 1;
}

/** The memories that are messages, by session and index. A memory is named by its number in the index. */
export class DialogueMap {
  readonly #sessions = new Map<string, DialogueSession>();
  /** By number, where a memory stands. */
  readonly #positions: { readonly session: DialogueSession; readonly index: number }[][] = [];
  /** By number. Emptied by each change. */
  #surroundings: (Surroundings | undefined)[] = [];
  // The figures of the running search: scores by memory with the shares of other hits, and the best score of each session.
  readonly #scores: number[] = [];
  readonly #isFound: boolean[] = [];
  readonly #best: number[] = [];

  add(number: number, { sources }: Memory): void {
    this.#scores[number] = 0;
    this.#isFound[number] = false;
    this.#surroundings = [];
    this.#positions[number] = sources.filter(isPlace).map(({ sessionId, from }) => {
      const session = this.#sessionOf(sessionId!);
      const there = session.messages.get(from!) ?? new Set();
      session.messages.set(from!, there.add(number));
      return { session, index: from! };
    });
  }

  remove(number: number): void {
    this.#surroundings = [];
    for (const { session, index } of this.#positions[number]!) session.messages.get(index)!.delete(number);
    this.#positions[number] = [];
  }

  /**
   * Gives shares of each hit's score to its neighbours and its session, because an answer seldom repeats the words of the question.
   *
   * @param ownScores By number, the scores of the hits.
   * @returns The hits and the neighbours, with all scores by number.
   */
  spread(hits: readonly number[], ownScores: readonly number[]): { found: number[]; scores: readonly number[] } {
    const [scores, isFound, best] = [this.#scores, this.#isFound, this.#best];
    const found = [...hits];
    for (const hit of hits) {
      isFound[hit] = true;
      scores[hit] = ownScores[hit]!;
    }
    for (const hit of hits) {
      const own = ownScores[hit]!;
      const { sessions, neighbours, shares } = this.#around(hit);
      for (const session of sessions) best[session] = Math.max(best[session]!, own);
      for (let i = 0; i < neighbours.length; i++) {
        const neighbour = neighbours[i]!;
        if (!isFound[neighbour]) {
          isFound[neighbour] = true;
          scores[neighbour] = 0;
          found.push(neighbour);
        }
        scores[neighbour]! += shares[i]! * own;
      }
    }
    for (const one of found) {
      let most = 0;
      for (const session of this.#around(one).sessions) most = Math.max(most, best[session]!);
      scores[one]! += SESSION_SHARE * most;
      isFound[one] = false;
    }
    best.fill(0);
    return { found, scores };
  }

  #around(number: number): Surroundings {
    const known = this.#surroundings[number];
    if (known) return known;
    const neighbours: number[] = [];
    const shares: number[] = [];
    for (const { session, index } of this.#positions[number]!) {
      DISTANCES.forEach((distance, i) => {
        for (const neighbour of session.messages.get(index + distance) ?? []) {
          if (neighbour === number) continue;
          neighbours.push(neighbour);
          shares.push(SHARES[i]!);
        }
      });
    }
    const sessions = this.#positions[number]!.map(({ session }) => session.number);
    return (this.#surroundings[number] = { sessions, neighbours, shares });
  }

  #sessionOf(id: string): DialogueSession {
    const known = this.#sessions.get(id);
    if (known) return known;
    const session = { number: this.#best.push(0) - 1, messages: new Map<number, Set<number>>() };
    this.#sessions.set(id, session);
    return session;
  }
}
