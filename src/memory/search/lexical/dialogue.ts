import type { Memory } from '../../../store/memory/contract.ts';

/** The distances of neighbours from a hit, and the shares of its score that they get. */
const DISTANCES = [-1, 1, -2, 2];
const SHARES = [0.5, 0.5, 0.25, 0.25];
/** The share of the best score of a session that its found messages get. */
const SESSION_SHARE = 0.2;

/** No memory. */
const NONE = -1;
/** The numbers of a place: its session, and the neighbours. */
const PLACE_LENGTH = 1 + DISTANCES.length;

/** The messages of a session that are memories. */
interface DialogueSession {
  readonly id: string;
  readonly number: number;
  /** By index, the numbers of the memories. */
  readonly messages: Map<number, number>;
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
  /** By number, the places of a memory, as numbers: looking at the objects takes as long as the rest of a search. Emptied by each change. */
  #places: (readonly number[] | undefined)[] = [];
  // The figures of the running search: scores by memory with the shares of other hits, and the best score of each session.
  readonly #scores: number[] = [];
  readonly #isFound: boolean[] = [];
  readonly #best: number[] = [];

  add(number: number, { sources }: Memory): void {
    this.#scores[number] = 0;
    this.#isFound[number] = false;
    this.#places = [];
    this.#positions[number] = sources.filter(isPlace).map(({ sessionId, from }) => {
      const session = this.#sessionOf(sessionId!);
      session.messages.set(from!, number);
      return { session, index: from! };
    });
  }

  remove(number: number): void {
    this.#places = [];
    for (const { session, index } of this.#positions[number]!) {
      if (session.messages.get(index) === number) session.messages.delete(index);
      if (session.messages.size === 0) this.#sessions.delete(session.id);
    }
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
      const places = this.#placesOf(hit);
      for (let at = 0; at < places.length; at += PLACE_LENGTH) {
        const session = places[at]!;
        best[session] = Math.max(best[session]!, own);
        for (let i = 0; i < SHARES.length; i++) {
          const neighbour = places[at + 1 + i]!;
          if (neighbour === NONE) continue;
          if (!isFound[neighbour]) {
            isFound[neighbour] = true;
            scores[neighbour] = 0;
            found.push(neighbour);
          }
          scores[neighbour]! += SHARES[i]! * own;
        }
      }
    }
    for (const one of found) {
      const places = this.#placesOf(one);
      let most = 0;
      for (let at = 0; at < places.length; at += PLACE_LENGTH) most = Math.max(most, best[places[at]!]!);
      scores[one]! += SESSION_SHARE * most;
      isFound[one] = false;
    }
    best.fill(0);
    return { found, scores };
  }

  #placesOf(number: number): readonly number[] {
    return (this.#places[number] ??= this.#positions[number]!.flatMap(({ session, index }) => [
      session.number,
      ...DISTANCES.map((distance) => session.messages.get(index + distance) ?? NONE),
    ]));
  }

  #sessionOf(id: string): DialogueSession {
    const known = this.#sessions.get(id);
    if (known) return known;
    const session = { id, number: this.#best.push(0) - 1, messages: new Map<number, number>() };
    this.#sessions.set(id, session);
    return session;
  }
}
