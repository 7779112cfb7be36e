import type { Memory } from '../../store/memory/contract.ts';

/** What the messages one and two places away from a hit get of its score. */
const NEIGHBOUR_SHARES = [0.5, 0.25];
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

  add(memory: Memory): void {
    for (const { sessionId, index } of dialoguePlaces(memory)) {
      let session = this.#sessions.get(sessionId);
      if (!session) this.#sessions.set(sessionId, (session = new Map<number, string>()));
      session.set(index, memory.id);
    }
  }

  remove(memory: Memory): void {
    for (const { sessionId, index } of dialoguePlaces(memory)) {
      const session = this.#sessions.get(sessionId);
      if (session?.get(index) !== memory.id) continue;
      session.delete(index);
      if (session.size === 0) this.#sessions.delete(sessionId);
    }
  }

  /** Gives the neighbours of each hit, and its session, their share of its score: what answers a question seldom repeats its words. */
  spread(scores: ReadonlyMap<string, number>, placesOf: (id: string) => readonly Place[]): Map<string, number> {
    const spread = new Map(scores);
    for (const [id, score] of scores) {
      for (const place of placesOf(id)) {
        for (const [neighbour, share] of this.#neighbours(place)) {
          spread.set(neighbour, (spread.get(neighbour) ?? 0) + share * score);
        }
      }
    }
    const best = new Map<string, number>();
    for (const [id, score] of scores) {
      for (const { sessionId } of placesOf(id)) best.set(sessionId, Math.max(best.get(sessionId) ?? 0, score));
    }
    for (const [id, score] of spread) {
      const session = Math.max(0, ...placesOf(id).map(({ sessionId }) => best.get(sessionId) ?? 0));
      spread.set(id, score + SESSION_SHARE * session);
    }
    return spread;
  }

  *#neighbours({ sessionId, index }: Place): Generator<[id: string, share: number]> {
    const session = this.#sessions.get(sessionId);
    for (const [i, share] of NEIGHBOUR_SHARES.entries()) {
      for (const place of [index - i - 1, index + i + 1]) {
        const id = session?.get(place);
        if (id !== undefined) yield [id, share];
      }
    }
  }
}
