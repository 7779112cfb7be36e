import { InMemoryMemoryStore, type MemoryDraft, type MemoryScopeId, type MemoryStore } from 'genkitx-agents/memory';

export const ADA: MemoryScopeId = { scope: 'user', appName: 'barista', userId: 'ada' };
export const BOB: MemoryScopeId = { scope: 'user', appName: 'barista', userId: 'bob' };
export const NOON = Date.parse('2026-05-01T12:00:00.000Z');

/** Makes a memory like the pipeline. */
export function draft(id: string, text: string, more: Partial<MemoryDraft> = {}): MemoryDraft {
  const at = '2026-05-01T11:00:00.000Z';
  const source = { id: 's', type: 'implicit', trust: 0.6, statement: text, sha256: '00', at } as const;
  return {
    id,
    kind: 'declarative',
    text,
    topics: [],
    importance: 0.5,
    confidence: 0.6,
    validFrom: at,
    sources: [source],
    ...more,
  };
}

/** Makes a memory from a message of a session, stored word for word. */
export function message(session: string, index: number, text: string): MemoryDraft {
  const [source] = draft('', text).sources;
  return draft(`${session}-${index}`, text, {
    role: 'user',
    sources: [{ ...source!, sessionId: session, from: index, to: index + 1 }],
  });
}

export async function put(store: MemoryStore, scope: MemoryScopeId, ...memories: MemoryDraft[]): Promise<void> {
  for (let i = 0; i < memories.length; i += 100) {
    await store.commit(
      scope,
      memories.slice(i, i + 100).map((memory) => ({ op: 'put', memory })),
    );
  }
}

/** A clock that the test moves. */
export class TestClock {
  #now = NOON;
  readonly #waiting = new Set<{ at: number; run: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#waiting.add(timer);
    return () => void this.#waiting.delete(timer);
  }

  /** The pending timers. */
  get waiting(): number {
    return this.#waiting.size;
  }

  pass(ms: number): void {
    this.#now += ms;
    for (const timer of this.#waiting) {
      if (timer.at <= this.#now) {
        this.#waiting.delete(timer);
        timer.run();
      }
    }
  }
}

/** A wrapper of a store that records the calls and can be made to hang. */
export function watched(store: MemoryStore): {
  store: MemoryStore;
  calls: { method: string; read: number }[];
  hang: Set<string>;
} {
  const calls: { method: string; read: number }[] = [];
  const hang = new Set<string>();
  const handler: ProxyHandler<MemoryStore> = {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: unknown[]) => unknown;
      if (name === 'tenant') return method;
      return async (...args: unknown[]) => {
        const call = { method: String(name), read: 0 };
        calls.push(call);
        if (hang.has(call.method)) return new Promise(() => {});
        const answer = await method(...args);
        call.read = memoriesIn(answer);
        return answer;
      };
    },
  };
  return { store: new Proxy(store, handler), calls, hang };
}

function memoriesIn(answer: unknown): number {
  if (Array.isArray(answer)) return answer.length;
  const { items, changed } = answer as { items?: unknown[]; changed?: unknown[] };
  return (items ?? changed ?? []).length;
}

export { InMemoryMemoryStore };
