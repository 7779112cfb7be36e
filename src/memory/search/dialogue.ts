import type { Memory } from '../../store/memory/contract.ts';

/** By distance from a hit: the share of its score that a message gets. */
const NEIGHBOUR_SHARES = [
  [-1, 0.5],
  [1, 0.5],
  [-2, 0.25],
  [2, 0.25],
] as const;
/** The share of the best score of a session that its found messages get. */
const SESSION_SHARE = 0.2;

/** The messages of a session that are memories, by their index. */
interface DialogueSession {
  readonly id: string;
  readonly messages: Map<number, IndexedMemory>;
  /** In a search: the score of its best hit; `0` between searches. */
  best: number;
}

interface Place {
  readonly session: DialogueSession;
  readonly index: number;
}

/** A memory of an index, with the figures of the running search. A search never waits, so only one runs at a time. */
export interface IndexedMemory {
  memory: Memory;
  /** Its places in dialogues. */
  places: readonly Place[];
  /** Its score by its own words. */
  ownScore: number;
  /** `ownScore` and the shares of other hits. */
  score: number;
  /** Whether the search has found it so far. */
  isFound: boolean;
}

/** Whether a memory is a single message of a dialogue, as it was said. */
export function isMessage({ sources }: Memory): boolean {
  return sources.some(isPlace);
}

function isPlace({ sessionId, from, to }: Memory['sources'][number]): boolean {
  return sessionId !== undefined && from !== undefined && to === from + 1;
}

/** The memories that are messages, by session and index. */
export class DialogueMap {
  readonly #sessions = new Map<string, DialogueSession>();

  add(memory: Memory): IndexedMemory {
    const indexed: IndexedMemory = { memory, places: [], ownScore: 0, score: 0, isFound: false };
    indexed.places = memory.sources.filter(isPlace).map(({ sessionId, from }) => {
      const session = this.#sessionOf(sessionId!);
      session.messages.set(from!, indexed);
      return { session, index: from! };
    });
    return indexed;
  }

  remove(indexed: IndexedMemory): void {
    for (const { session, index } of indexed.places) {
      if (session.messages.get(index) === indexed) session.messages.delete(index);
      if (session.messages.size === 0) this.#sessions.delete(session.id);
    }
  }

  /**
   * Gives shares of each hit's score to its neighbours and its session, because an answer seldom repeats the words of the question. Returns
   * the hits and the neighbours, with their scores.
   */
  spread(hits: readonly IndexedMemory[]): IndexedMemory[] {
    const found = [...hits];
    for (const hit of hits) {
      hit.isFound = true;
      hit.score = hit.ownScore;
    }
    for (const { ownScore, places } of hits) {
      for (const { session, index } of places) {
        session.best = Math.max(session.best, ownScore);
        for (const [distance, share] of NEIGHBOUR_SHARES) {
          const neighbour = session.messages.get(index + distance);
          if (!neighbour) continue;
          if (!neighbour.isFound) {
            neighbour.isFound = true;
            neighbour.score = 0;
            found.push(neighbour);
          }
          neighbour.score += share * ownScore;
        }
      }
    }
    for (const one of found) {
      let best = 0;
      for (const { session } of one.places) best = Math.max(best, session.best);
      one.score += SESSION_SHARE * best;
      one.isFound = false;
    }
    for (const { places } of hits) for (const { session } of places) session.best = 0;
    return found;
  }

  #sessionOf(id: string): DialogueSession {
    const known = this.#sessions.get(id);
    if (known) return known;
    const session = { id, messages: new Map<number, IndexedMemory>(), best: 0 };
    this.#sessions.set(id, session);
    return session;
  }
}
