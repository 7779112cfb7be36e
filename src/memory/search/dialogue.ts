import type { Memory } from '../../store/memory/contract.ts';

/** What the messages so many places away from a hit get of its score. */
const NEIGHBOUR_SHARES = [
  [-1, 0.5],
  [1, 0.5],
  [-2, 0.25],
  [2, 0.25],
] as const;
/** What the found messages of a session get of the score of its best one. */
const SESSION_SHARE = 0.2;

interface Place {
  readonly sessionId: string;
  readonly index: number;
}

/** Where a memory stands in dialogues, if it is a single message of one, as it was said. */
export function dialoguePlaces(memory: Memory): Place[] {
  return memory.sources.flatMap(({ sessionId, from, to }) =>
    sessionId !== undefined && from !== undefined && to === from + 1 ? [{ sessionId, index: from }] : [],
  );
}

/** Which memories are messages of the same session, by their place. */
export class DialogueMap {
  readonly #sessions = new Map<string, Map<number, string>>();
  /** The places of the memories that have any. */
  readonly #places = new Map<string, readonly Place[]>();

  add(memory: Memory): void {
    const places = dialoguePlaces(memory);
    if (places.length > 0) this.#places.set(memory.id, places);
    for (const { sessionId, index } of places) {
      let session = this.#sessions.get(sessionId);
      if (!session) this.#sessions.set(sessionId, (session = new Map<number, string>()));
      session.set(index, memory.id);
    }
  }

  remove(id: string): void {
    for (const { sessionId, index } of this.#places.get(id) ?? []) {
      const session = this.#sessions.get(sessionId);
      if (session?.get(index) !== id) continue;
      session.delete(index);
      if (session.size === 0) this.#sessions.delete(sessionId);
    }
    this.#places.delete(id);
  }

  /** Gives the neighbours of each hit, and its session, their share of its score: what answers a question seldom repeats its words. */
  spread(scores: ReadonlyMap<string, number>): Map<string, number> {
    const spread = new Map(scores);
    const best = new Map<string, number>();
    for (const [id, score] of scores) {
      for (const { sessionId, index } of this.#places.get(id) ?? []) {
        best.set(sessionId, Math.max(best.get(sessionId) ?? 0, score));
        const session = this.#sessions.get(sessionId);
        if (!session) continue;
        for (const [distance, share] of NEIGHBOUR_SHARES) {
          const neighbour = session.get(index + distance);
          if (neighbour !== undefined) spread.set(neighbour, (spread.get(neighbour) ?? 0) + share * score);
        }
      }
    }
    for (const [id, score] of spread) {
      let session = 0;
      for (const { sessionId } of this.#places.get(id) ?? []) session = Math.max(session, best.get(sessionId) ?? 0);
      if (session > 0) spread.set(id, score + SESSION_SHARE * session);
    }
    return spread;
  }
}
