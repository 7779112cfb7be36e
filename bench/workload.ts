/**
 * The standard workload of every speed, cost and size figure of the project: a linear chat session from a seeded generator, so that every run
 * and every store gets the same bytes.
 *
 * Turn i adds a user message of 300 bytes and a model message of 1,200 bytes; on every 5th turn, before the reply, a tool request (400 bytes
 * of input) and its response (2,350 bytes in a nested array of rows). In the custom state (1 KB, two levels deep, with a list) it raises a
 * counter and changes one 40-byte field. On every 50th turn it adds a named artifact of 20,000 bytes.
 */
import type { SessionSnapshotInput, SessionState } from 'genkit/beta';

type Message = NonNullable<SessionState['messages']>[number];
type Artifact = NonNullable<SessionState['artifacts']>[number];

/** The custom state of the workload. */
export interface WorkloadState {
  counter: number;
  note: string;
  profile: { name: string; city: string; bio: string };
  tags: string[];
}

const WORDS =
  'the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she ' +
  'there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could ' +
  'these two may first then do any like my now over such our man me even most made after also did many off before must well back through years ' +
  'where much your way down should because long each just state people those too mr how little good world make very year still see own work men ' +
  'day get here between both life being under three never know same last another while us might great go come since against right came take used';

const VOCABULARY = WORDS.split(' ');

/** A small, well-known generator (mulberry32): the same seed gives the same numbers on every machine. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Builds the session turn by turn. `state` is the state after the last turn, and belongs to the workload. */
export class Workload {
  readonly sessionId: string;
  readonly #random: () => number;
  readonly #messages: Message[] = [];
  readonly #artifacts: Artifact[] = [];
  #custom: WorkloadState;
  #turn = 0;
  #information = 0;

  constructor(options: { sessionId?: string; seed?: number } = {}) {
    this.sessionId = options.sessionId ?? 'standard-workload';
    this.#random = random(options.seed ?? 42);
    this.#custom = {
      counter: 0,
      note: this.#text(40),
      profile: { name: this.#text(20), city: this.#text(20), bio: this.#text(500) },
      tags: Array.from({ length: 12 }, () => this.#text(24)),
    };
  }

  /** Bytes of JSON that the turns so far added or changed. */
  get information(): number {
    return this.#information;
  }

  /** Plays the next turn and returns the full state after it: new containers, messages shared with earlier results. */
  next(): SessionState<WorkloadState> {
    this.#turn++;
    const added: Message[] = [{ role: 'user', content: [{ text: this.#text(300) }] }];
    if (this.#turn % 5 === 0) added.push(...this.#toolCall());
    added.push({ role: 'model', content: [{ text: this.#text(1200) }] });
    this.#messages.push(...added);
    const note = this.#text(40);
    this.#custom = { ...this.#custom, counter: this.#turn, note };
    this.#count(added, note);
    if (this.#turn % 50 === 0) this.#addArtifact();
    return this.state();
  }

  state(): SessionState<WorkloadState> {
    return {
      sessionId: this.sessionId,
      messages: [...this.#messages],
      custom: { ...this.#custom },
      artifacts: [...this.#artifacts],
    };
  }

  #toolCall(): Message[] {
    const ref = `call-${this.#turn}`;
    const rows = Array.from({ length: 10 }, (_, i) => [i, this.#text(190), [Math.floor(this.#random() * 1e6), 'row']]);
    return [
      { role: 'model', content: [{ toolRequest: { name: 'lookup', ref, input: { query: this.#text(385) } } }] },
      { role: 'tool', content: [{ toolResponse: { name: 'lookup', ref, output: { rows, source: this.#text(120) } } }] },
    ];
  }

  #addArtifact(): void {
    const artifact = { name: `report-${this.#turn}`, parts: [{ text: this.#text(20_000) }] };
    this.#artifacts.push(artifact);
    this.#information += JSON.stringify(artifact).length;
  }

  #count(added: Message[], note: string): void {
    this.#information += JSON.stringify(added).length + note.length + 8;
  }

  /** English-like text of exactly this many bytes. */
  #text(length: number): string {
    let text = '';
    while (text.length < length) {
      text += `${VOCABULARY[Math.floor(this.#random() * VOCABULARY.length)]!} `;
    }
    return text.slice(0, length);
  }
}

/** The snapshot of a completed turn. */
export function completedSnapshot(
  state: SessionState<WorkloadState>,
  parentId: string | undefined,
): SessionSnapshotInput<WorkloadState> {
  const now = new Date().toISOString();
  return {
    ...(state.sessionId !== undefined && { sessionId: state.sessionId }),
    ...(parentId !== undefined && { parentId }),
    createdAt: now,
    updatedAt: now,
    status: 'completed',
    finishReason: 'stop',
    state,
  };
}
