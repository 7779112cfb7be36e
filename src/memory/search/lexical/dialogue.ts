import type { Memory } from '../../../store/memory/contract.ts';

/** The distances of neighbours from a hit, each with the share of its score that they get. */
const SHARES = [
  [[-1, 1], 0.5],
  [[-2, 2], 0.25],
] as const;
/** The share of the best score of a session that its found messages get. */
const SESSION_SHARE = 0.2;

/** A session with messages that are memories. */
interface DialogueSession {
  readonly number: number;
  /** By index, the numbers of the memories. */
  readonly messages: Map<number, Set<number>>;
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
  /**
   * What stands around memories: the number of its sessions and these, then the number of its neighbours at each distance and these. One list
   * for all, because a search reads a few hundred of them, and lists of their own would be scattered over the memory of the process.
   */
  readonly #around: number[] = [];
  /** By number, the place of a memory in `#around`. Emptied by each change. */
  #places: (number | undefined)[] = [];
  // The figures of the running search: scores by memory with the shares of other hits, and the best score of each session.
  readonly #scores: number[] = [];
  readonly #isFound: boolean[] = [];
  readonly #best: number[] = [];

  add(number: number, { sources }: Memory): void {
    this.#scores[number] = 0;
    this.#isFound[number] = false;
    this.#forgetPlaces();
    this.#positions[number] = sources.filter(isPlace).map(({ sessionId, from }) => {
      const session = this.#sessionOf(sessionId!);
      const there = session.messages.get(from!) ?? new Set();
      session.messages.set(from!, there.add(number));
      return { session, index: from! };
    });
  }

  remove(number: number): void {
    this.#forgetPlaces();
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
    const around = this.#around;
    for (const hit of hits) {
      const own = ownScores[hit]!;
      let at = this.#placeOf(hit);
      for (let left = around[at++]!; left > 0; left--) {
        const session = around[at++]!;
        if (own > best[session]!) best[session] = own;
      }
      for (let distance = 0; distance < SHARES.length; distance++) {
        const share = SHARES[distance]![1] * own;
        for (let left = around[at++]!; left > 0; left--) {
          const neighbour = around[at++]!;
          if (!isFound[neighbour]) {
            isFound[neighbour] = true;
            scores[neighbour] = 0;
            found.push(neighbour);
          }
          scores[neighbour]! += share;
        }
      }
    }
    for (const one of found) {
      let most = 0;
      let at = this.#placeOf(one);
      for (let left = around[at++]!; left > 0; left--) most = Math.max(most, best[around[at++]!]!);
      scores[one]! += SESSION_SHARE * most;
      isFound[one] = false;
    }
    best.fill(0);
    return { found, scores };
  }

  /** Where `#around` tells of a memory. */
  #placeOf(number: number): number {
    const known = this.#places[number];
    if (known !== undefined) return known;
    const positions = this.#positions[number]!;
    const place = this.#around.push(positions.length) - 1;
    for (const { session } of positions) this.#around.push(session.number);
    for (const [distances] of SHARES) {
      const count = this.#around.push(0) - 1;
      for (const { session, index } of positions)
        for (const distance of distances)
          for (const neighbour of session.messages.get(index + distance) ?? [])
            if (neighbour !== number) this.#around.push(neighbour);
      this.#around[count] = this.#around.length - 1 - count;
    }
    return (this.#places[number] = place);
  }

  #forgetPlaces(): void {
    this.#around.length = 0;
    this.#places = [];
  }

  #sessionOf(id: string): DialogueSession {
    const known = this.#sessions.get(id);
    if (known) return known;
    const session = { number: this.#best.push(0) - 1, messages: new Map<number, Set<number>>() };
    this.#sessions.set(id, session);
    return session;
  }
}
