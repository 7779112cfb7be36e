import type { Random } from '../../support/random.ts';
import type { Faults } from './backend.ts';

/** A turn to run. */
export interface PlannedTurn {
  /** The user's text, unique among the turns. */
  readonly text: string;
  /** How long the agent's function takes. */
  readonly ms: number;
  readonly isFailing: boolean;
}

/** A call of an agent. */
export interface PlannedCall {
  readonly sessionId: string;
  readonly turns: readonly PlannedTurn[];
  readonly isDetached: boolean;
  /** The caller's signal is aborted. */
  readonly abortAfterMs?: number;
}

/** An event at some time in some process. */
export type PlannedEvent = { readonly atMs: number; readonly process: number } & (
  | { readonly kind: 'call'; readonly call: PlannedCall }
  /** Aborts the turn of the session that went to the background last. */
  | { readonly kind: 'abort'; readonly sessionId: string }
  | { readonly kind: 'recover' }
  /** The process is cut off for a while, longer than a lease; meanwhile another one looks for runs to take over. */
  | { readonly kind: 'sleep'; readonly ms: number }
  /** The process dies, and another one starts in its place. */
  | { readonly kind: 'kill' }
  /** The same, but it hands its runs over before. */
  | { readonly kind: 'leave'; readonly graceMs: number }
);

/** The plan of a seed. */
export interface Scenario {
  readonly agent: { onConflict?: 'reject' | 'queue' | 'branch'; onAbort?: 'keep' };
  readonly faults: Faults;
  readonly isWatched: boolean;
  readonly processes: number;
  readonly sessions: readonly string[];
  readonly events: readonly PlannedEvent[];
}

const EVENTS = [...Array<'call'>(7).fill('call'), 'abort', 'recover', 'kill', 'leave', 'sleep'] as const;
const LENGTH_MS = 20_000;

/** The plan of this seed. */
export function makeScenario(random: Random): Scenario {
  const processes = 1 + random.below(3);
  const sessions = ['one', 'two'].slice(0, 1 + random.below(2));
  const severity = random.pick([0, 0.02, 0.1, 0.25]);
  const share = () => severity * random.next();
  const faults = { refused: share(), lost: share(), hung: share() / 3, slow: share(), rerun: share() };
  const onConflict = random.pick([undefined, 'reject', 'queue', 'branch'] as const);
  const agent = { ...(onConflict && { onConflict }), ...(random.next() < 0.3 && { onAbort: 'keep' as const }) };
  let turns = 0;
  const call = (): PlannedCall => ({
    sessionId: random.pick(sessions),
    turns: Array.from({ length: 1 + random.below(3) }, () => ({
      text: `turn ${++turns}`,
      ms: random.pick([0, 50, 500, 3000, 12_000]),
      isFailing: random.next() < 0.1,
    })),
    isDetached: random.next() < 0.4,
    ...(random.next() < 0.15 && { abortAfterMs: random.below(2000) }),
  });
  const details = {
    abort: () => ({ sessionId: random.pick(sessions) }),
    leave: () => ({ graceMs: random.below(2000) }),
  };
  const events = Array.from({ length: 6 + random.below(10) }, (): PlannedEvent => {
    const kind = random.pick(EVENTS);
    const at = { atMs: random.below(LENGTH_MS), process: random.below(processes) };
    if (kind === 'call') return { ...at, kind, call: call() };
    if (kind === 'abort') return { ...at, kind, ...details.abort() };
    if (kind === 'sleep') return { ...at, kind, ms: 7000 + random.below(4000) };
    if (kind === 'leave') return { ...at, kind, ...details.leave() };
    return { ...at, kind };
  });
  return { agent, faults, isWatched: random.next() < 0.7, processes, sessions, events };
}
