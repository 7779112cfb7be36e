/** Generates long dialogues between friends from a seed, with questions and the messages that answer them. */
import { Random } from '../../test/support/random.ts';
import { PHRASES, type Domain, type Phrases } from './phrases.ts';

/** A message of a dialogue. */
export interface CorpusMessage {
  /** Unique in the dialogue. */
  readonly id: string;
  readonly session: number;
  /** Its position in the session. */
  readonly index: number;
  /** ISO 8601. */
  readonly at: string;
  /** Empty if the text is kept without a name. */
  readonly speaker: string;
  readonly text: string;
}

/** A question about a dialogue. */
export interface CorpusQuestion {
  readonly kind: 'single' | 'temporal' | 'multi' | 'current';
  readonly text: string;
  /** Ids of the messages that answer it. */
  readonly evidence: readonly string[];
}

/** All messages of two friends. */
export interface Dialogue {
  readonly messages: readonly CorpusMessage[];
  readonly questions: readonly CorpusQuestion[];
}

interface Fact {
  readonly domain: Domain;
  readonly value: string;
  readonly owner: string;
  readonly evidence: string;
}

const DAY = 86_400_000;

/** Dialogues of this many people with one friend each; one in ten speaks German. */
export function makeCorpus(seed: number, people = 100, sessions = 50): Dialogue[] {
  return Array.from({ length: people }, (_, i) =>
    new Talk(new Random(seed * 1_000 + i), i % 10 === 9 ? PHRASES.german : PHRASES.english).dialogue(sessions),
  );
}

class Talk {
  readonly #random: Random;
  readonly #phrases: Phrases;
  readonly #friends: readonly [string, string];
  readonly #messages: CorpusMessage[] = [];
  readonly #facts: Fact[] = [];
  #time = Date.UTC(2025, 0, 3);
  #session = -1;
  #index = 0;

  constructor(random: Random, phrases: Phrases) {
    this.#random = random;
    this.#phrases = phrases;
    const [first, second] = random.shuffled(phrases.names);
    this.#friends = [first!, second!];
  }

  dialogue(sessions: number): Dialogue {
    for (let i = 0; i < sessions; i++) this.#meet();
    return { messages: this.#messages, questions: this.#questions() };
  }

  #meet(): void {
    this.#session++;
    this.#index = 0;
    this.#time += (1 + this.#random.below(14)) * DAY;
    const [one, other] = this.#random.shuffled(this.#friends) as [string, string];
    this.#say(one, this.#filled(this.#random.pick(this.#phrases.openings), { f: other }));
    const threads = 3 + this.#random.below(3);
    for (let i = 0; i < threads; i++) {
      const [owner, friend] = this.#random.shuffled(this.#friends) as [string, string];
      const kind = this.#random.next();
      if (kind < 0.3) this.#tell(owner, friend);
      else if (kind < 0.5) this.#distract(owner, friend);
      else if (kind < 0.65 && this.#facts.length > 0) this.#echo(owner, friend);
      else this.#chat(owner, friend);
    }
  }

  #tell(owner: string, friend: string): void {
    const domain = this.#random.pick(this.#phrases.domains);
    const value = this.#random.pick(domain.values);
    if (this.#facts.some((fact) => fact.owner === owner && fact.domain === domain && fact.value === value)) return;
    const words =
      this.#random.next() < 0.4 ? this.#confirm(domain, value, owner, friend) : this.#announce(domain, value, friend);
    const evidence = this.#say(owner, words.charAt(0).toUpperCase() + words.slice(1));
    this.#facts.push({ domain, value, owner, evidence });
    this.#say(friend, this.#filled(this.#random.pick(this.#phrases.reactions), { o: owner }));
    if (this.#random.next() < 0.6) this.#say(owner, this.#random.pick(this.#phrases.afterthoughts));
  }

  /** The owner's message, with the value. */
  #announce(domain: Domain, value: string, friend: string): string {
    const parts = this.#random.pick(domain.said).split('|');
    if (parts.length > 1) this.#say(friend, parts[0]!);
    else this.#say(friend, this.#random.pick(domain.raised));
    return this.#filled(parts.at(-1)!, { f: friend, v: value });
  }

  /** The owner's message if the value was named by the friend, or by the owner two messages earlier. */
  #confirm(domain: Domain, value: string, owner: string, friend: string): string {
    this.#say(friend, this.#random.pick(domain.raised));
    const named = this.#filled(this.#random.pick(this.#phrases.echoes), { v: value });
    if (this.#random.next() < 0.5) this.#say(friend, named);
    else {
      this.#say(owner, named);
      this.#say(friend, this.#filled(this.#random.pick(this.#phrases.reactions), { o: owner }));
    }
    return this.#random.pick(this.#phrases.confirmations);
  }

  #distract(owner: string, friend: string): void {
    const domain = this.#random.pick(this.#phrases.domains);
    this.#say(owner, this.#filled(this.#random.pick(domain.distracting), { w: this.#random.pick(domain.values) }));
    this.#say(friend, this.#random.pick(this.#phrases.smallTalk)[1]);
  }

  #echo(owner: string, friend: string): void {
    this.#say(
      owner,
      this.#filled(this.#random.pick(this.#phrases.echoes), { v: this.#random.pick(this.#facts).value }),
    );
    this.#say(friend, this.#random.pick(this.#phrases.afterthoughts));
  }

  #chat(owner: string, friend: string): void {
    const [remark, answer] = this.#random.pick(this.#phrases.smallTalk);
    this.#say(owner, remark);
    this.#say(friend, answer);
  }

  #say(speaker: string, words: string): string {
    const filler = this.#random.pick(this.#phrases.fillers);
    const chatter = this.#random.next();
    const text = chatter < 0.25 ? `${words} ${filler}` : chatter < 0.4 ? `${filler} ${words}` : words;
    const id = `${this.#session}:${this.#index}`;
    const at = new Date(this.#time + this.#index * 60_000).toISOString();
    this.#messages.push({ id, session: this.#session, index: this.#index++, at, speaker, text });
    return id;
  }

  #questions(): CorpusQuestion[] {
    return this.#facts.flatMap((fact) => {
      const { domain, owner, value } = fact;
      const alike = this.#facts.filter((other) => other.domain === domain && other.owner === owner);
      const isLast = alike.at(-1) === fact;
      const known = domain.asked.filter((text) => text.includes('{v}'));
      const questions: CorpusQuestion[] = [];
      const ask = (kind: CorpusQuestion['kind'], texts: readonly string[], evidence: readonly string[]): void => {
        if (texts.length > 0)
          questions.push({ kind, text: this.#filled(this.#random.pick(texts), { o: owner, v: value }), evidence });
      };
      ask(this.#random.next() < 0.5 ? 'temporal' : 'single', known, [fact.evidence]);
      if (!isLast || this.#random.next() < 0.6) return questions;
      if (domain.askedOfAll)
        ask(
          'multi',
          domain.askedOfAll,
          alike.map(({ evidence }) => evidence),
        );
      else
        ask(
          'current',
          domain.asked.filter((text) => !text.includes('{v}')),
          [fact.evidence],
        );
      return questions;
    });
  }

  #filled(text: string, slots: Record<string, string>): string {
    return text.replace(/\{(\w)\}/g, (slot, name: string) => slots[name] ?? slot);
  }
}
