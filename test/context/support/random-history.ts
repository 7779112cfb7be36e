import type { MessageData, Part } from 'genkit';
import type { HistoryStrategy } from 'genkitx-agents/context';
import { clearToolOutputs, lastTurns, tokenBudget } from 'genkitx-agents/context';
import type { Random } from '../../support/random.ts';

/** Messages as a session may hold them after crashes, interrupts and handlers that do as they like. Each part has a text of its own, such as `#12`. */
export class RandomHistory {
  readonly messages: MessageData[] = [];
  readonly #random: Random;
  #parts = 0;

  constructor(random: Random) {
    this.#random = random;
    const turns = random.below(12);
    if (random.below(5) === 0) this.#say('model', [this.#text()]);
    if (random.below(15) === 0) this.#say('tool', [this.#response('lost', 'r0')]);
    for (let i = 0; i < turns; i++) {
      this.#turn(false);
      if (random.below(8) > 0) continue;
      // The user began another turn instead of an answer.
      this.#say('user', [this.#text()]);
      if (random.below(3) === 0) this.#toolStep(true);
      this.#say('model', this.#requests({ interrupt: true }));
    }
    // The current turn: new, in a tool loop, or one that the user begins instead of an answer.
    if (random.below(4) === 0) {
      this.#say('user', [this.#text()]);
      this.#say('model', this.#requests({ interrupt: true }));
    }
    this.#turn(true);
  }

  #turn(isCurrent: boolean): void {
    const random = this.#random;
    this.#say('user', random.pick([[this.#text()], [this.#text(), this.#media()], [this.#media(), this.#text()]]));
    // Failed before the model had answered.
    if (!isCurrent && random.below(8) === 0) return;
    for (let step = random.below(3); step > 0; step--) this.#toolStep(isCurrent);
    if (isCurrent) return;
    const reply = random.pick([
      [this.#text()],
      [this.#text(), this.#text()],
      [{ reasoning: this.#name() }, this.#text()],
      [{ text: '' }, this.#text()],
      [{ text: '' }],
      [],
    ]);
    if (random.below(10) > 0) this.#say('model', reply);
  }

  #toolStep(isWhole: boolean): void {
    const random = this.#random;
    const requests = this.#requests({});
    const words = random.below(3) === 0 ? [this.#text()] : [];
    this.#say('model', [...words, ...requests]);
    const responses = requests.map(({ toolRequest }) => this.#response(toolRequest!.name, toolRequest!.ref));
    const kind = isWhole ? 0 : random.below(10);
    if (kind === 7) responses.pop();
    if (kind === 8) responses.push(this.#response('lost', 'r9'));
    if (kind === 9) return;
    if (kind === 6) for (const response of responses) this.#say('tool', [response]);
    else this.#say('tool', random.shuffled(responses));
  }

  #requests(metadata: Record<string, unknown>): Part[] {
    const count = 1 + this.#random.below(3);
    const hasRefs = this.#random.below(3) > 0;
    return Array.from({ length: count }, (_, i) => ({
      toolRequest: {
        name: this.#random.pick(['look', 'find']),
        ...(hasRefs && { ref: `r${i}` }),
        input: { id: this.#name() },
      },
      ...(Object.keys(metadata).length > 0 && { metadata }),
    }));
  }

  #response(name: string, ref: string | undefined): Part {
    const output = { id: this.#name(), rows: 'x '.repeat(this.#random.below(200)) };
    return { toolResponse: { name, ...(ref !== undefined && { ref }), output } };
  }

  #say(role: MessageData['role'], content: Part[]): void {
    this.messages.push({ role, content });
  }

  #text(): Part {
    return { text: `${this.#name()} ${'word '.repeat(this.#random.below(60))}` };
  }

  #media(): Part {
    return { media: { contentType: 'image/png', url: `https://example.com/${this.#name()}.png` } };
  }

  #name(): string {
    return `#${++this.#parts};`;
  }
}

/** Some strategies, the project's and careless ones. */
export function randomStrategies(random: Random): HistoryStrategy[] {
  const drop = random.below(1_000);
  const careless: HistoryStrategy = ({ items }) => ({
    items: items.filter(({ position }) => (position * 7 + drop) % 10 > 3),
  });
  const confused: HistoryStrategy = ({ items }) => ({
    items: [...items.toReversed(), ...items.slice(0, 1), { position: -1, message: { role: 'user', content: [] } }],
  });
  const withStep = (kept: number, most: number) =>
    [kept, { step: 1 + random.below(Math.max(1, Math.min(kept, most))) }] as const;
  const summarized: HistoryStrategy = ({ items }) => {
    const starts = items.filter(({ message }) => message.role === 'user').map(({ position }) => position);
    const to = Math.max(0, starts[drop % (starts.length + 1)] ?? 0);
    // A summary that forgets to leave out what it covers is sent all the same.
    const kept = drop % 3 === 0 ? items : items.filter(({ position }) => position >= to);
    return { items: kept, summary: { text: 'Notes.', to, sha256: 'x', tokens: 2 } };
  };
  const all = [
    () => summarized,
    () => lastTurns(...withStep(random.below(6), 3)),
    () => tokenBudget(...withStep(random.below(400), 100)),
    () => clearToolOutputs({ keepTurns: random.below(3) }),
    () => careless,
    () => confused,
  ];
  return Array.from({ length: random.below(4) }, () => random.pick(all)());
}
