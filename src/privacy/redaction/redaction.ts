import { createHash } from 'node:crypto';
import { invalidArgument } from '../../errors.ts';
import { countSame } from '../../json/count-same.ts';
import { freeze } from '../../json/immutable.ts';
import { formatPointer } from '../../json/pointer.ts';
import { isOwn, setMember, stringifyJson } from '../../json/value.ts';
import { isPromise } from '../rules/find.ts';
import { mayBeJson } from '../rules/json-text.ts';
import { redactText } from '../rules/redact-text.ts';
import { redactValue } from '../rules/redact-value.ts';
import type { Numbering, PrivacyRule } from '../rules/types.ts';
import type { RedactingSettings } from './options.ts';
import { runRules } from './run-rules.ts';
import type { OpenNumbers } from './session-numbers.ts';

export type Path = readonly string[];

/** A part of a value that no rule has seen yet. */
interface Part {
  readonly path: Path;
  readonly value: unknown;
  /** All that the result depends on, besides the numbers. */
  readonly key: string;
}

/** Thrown out of a function that a store runs, when something asynchronous has to be done first. The call of the store is then made again. */
export class NotYet extends Error {
  constructor(readonly work: () => Promise<void>) {
    super('Something has to be done before this can be saved.');
  }
}

/** More rounds than a save needs, also when many others write the same snapshot at once. */
const MAX_ROUNDS = 1000;

/**
 * Makes the call, again after each {@link NotYet}.
 *
 * @throws `INVALID_ARGUMENT` when it never has what it needs.
 */
export async function whenReady<T>(call: () => Promise<T>): Promise<T> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      await error.work();
    }
  }
  throw invalidArgument(
    'The mutator answers another text each time it runs, say the time, so no rule can search it before it is saved. Make the text before the save.',
  );
}

/** Longer names are searched each time. */
const MAX_PLAIN_LENGTH = 64;

export interface RedactionOptions {
  readonly openNumbers: () => Promise<OpenNumbers>;
  /** Redacted parts of earlier calls with the same numbers. Default: none. */
  readonly memo?: () => Map<string, unknown>;
  /** Ids and names in which the rules found nothing in earlier calls. Default: none. */
  readonly plainTexts?: Set<string>;
  /** Parts that stay as they are. Default: none. */
  readonly except?: readonly Path[];
  /** Whether no rule gets to see a text, a number or the name of a member at a place. Default: never. */
  readonly isMachineMade?: (text: string, path: Path) => boolean;
}

/**
 * Redacts the values of one call of a store. A store runs the caller's functions within its own, which are synchronous and may run more than once,
 * while rules may be asynchronous. So {@link apply} inserts what is known, and throws {@link NotYet} when the rules have to search something first.
 *
 * Only what differs from the stored value is searched: what the store has was redacted when it was saved.
 */
export class Redaction {
  readonly #settings: RedactingSettings;
  readonly #options: RedactionOptions;
  readonly #rules: readonly PrivacyRule[];
  /** The redacted parts of this call, by key. */
  readonly #redacted = new Map<string, unknown>();
  #deadline: AbortSignal | undefined;
  #mayAsk = false;

  constructor(settings: RedactingSettings, options: RedactionOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#rules = rememberAnswers(settings.rules);
  }

  /**
   * The value with placeholders. Parts that are the same objects as in `base` are kept.
   *
   * @param value JSON that never changes.
   * @param options.inStore Whether a store waits for the answer, perhaps with a lock: then no rule is asked. Default: true.
   * @throws NotYet when a part was not searched.
   */
  apply<T>(base: unknown, value: T, { inStore = true } = {}): T {
    this.#mayAsk = !inStore;
    const unsearched: Part[] = [];
    const redacted = this.#walk(base, value, [], unsearched);
    if (unsearched.length > 0) throw new NotYet(() => this.#search(unsearched));
    return redacted as T;
  }

  /** {@link apply}, once everything is searched. */
  redact<T>(base: unknown, value: T): Promise<T> {
    return whenReady(async () => this.apply(base, value, { inStore: false }));
  }

  /** @throws `INVALID_ARGUMENT` when a rule finds something in an id: ids are stored as they are. */
  async assertPlainIds(ids: Readonly<Record<string, string | undefined>>): Promise<void> {
    for (const [name, id] of Object.entries(ids)) {
      if (typeof id !== 'string' || id === '') continue;
      const answer = await this.#guarded(`the ${name}`, () => redactText(id, this.#rules, { signal: this.#timeUp() }));
      if (!answer || answer.findings.length === 0) continue;
      const kinds = [...new Set(answer.findings.map(({ kind }) => kind))].join(', ');
      throw invalidArgument(`The ${name} holds personal data (${kinds}). Ids are stored as they are: use another one.`);
    }
  }

  #walk(base: unknown, value: unknown, path: Path, unsearched: Part[]): unknown {
    if (value === base || typeof value === 'boolean' || value === null || value === undefined) return value;
    if (typeof value !== 'object') return this.#lookUp(path, value, unsearched);
    if (isWhole(path)) return this.#lookUp(path, value, unsearched);
    // The outermost levels are walked without a base too, so that their parts are those that later calls compare.
    const isOuter = path.length < 2;
    if (Array.isArray(value)) {
      if (Array.isArray(base) || isOuter || this.#isDeep) {
        return this.#walkElements(Array.isArray(base) ? base : [], value, path, unsearched);
      }
    } else if (isMembers(base) || isOuter || this.#isDeep) {
      return this.#walkMembers(isMembers(base) ? base : {}, value, path, unsearched);
    }
    return this.#lookUp(path, value, unsearched);
  }

  /** A mutator of the runtime may make a new time each time it runs, so what is machine-made is never searched with something else. */
  get #isDeep(): boolean {
    return this.#options.isMachineMade !== undefined;
  }

  #walkElements(base: readonly unknown[], value: readonly unknown[], path: Path, unsearched: Part[]): unknown {
    let redacted: unknown[] | undefined;
    // Nearly all elements of a long session are stored already.
    const same = countSame(base, value);
    const moved = new Set(same < value.length ? base.slice(same) : []);
    for (let i = same; i < value.length; i++) {
      const place = [...path, String(i)];
      if (isWhole(place) && moved.has(value[i])) continue;
      const element = this.#walk(base[i], value[i], place, unsearched);
      if (element !== value[i]) (redacted ??= [...value])[i] = element;
    }
    return redacted ?? value;
  }

  #walkMembers(base: object, value: object, path: Path, unsearched: Part[]): object {
    const redacted = {};
    for (const [name, member] of Object.entries(value)) {
      const isKnown = isOwn(base, name);
      if (isKnown || this.#isDeep || (path.length === 0 && WALKED_MEMBERS.has(name))) {
        const before = isKnown ? (base as Record<string, unknown>)[name] : undefined;
        const newName = isKnown || !this.#isDeep ? name : (this.#lookUp(path, name, unsearched) as string);
        setMember(redacted, freeName(redacted, newName), this.#walk(before, member, [...path, name], unsearched));
        continue;
      }
      // A new name is searched with its value.
      const added = {};
      setMember(added, name, member);
      const [[newName, newMember]] = Object.entries(this.#lookUp(path, added, unsearched) as object) as [
        [string, unknown],
      ];
      setMember(redacted, freeName(redacted, newName), newMember);
    }
    return redacted;
  }

  #lookUp(path: Path, value: unknown, unsearched: Part[]): unknown {
    const isScalar = typeof value === 'string' || typeof value === 'number';
    if (isScalar && this.#options.isMachineMade?.(String(value), path)) return value;
    const key = this.#keyOf(path, value);
    if (this.#redacted.has(key)) return this.#redacted.get(key);
    const memo = this.#options.memo?.();
    if (memo?.has(key)) return memo.get(key);
    if (this.#mayAsk && this.#isClean(value, this.#settingOf(path).label)) {
      memo?.set(key, freeze(value));
      return value;
    }
    unsearched.push({ path, value, key });
    return value;
  }

  /**
   * Whether the rules find nothing in the value or in the names of its members, and say so at once, as nearly always. `false` also where that
   * takes more: a rule that is asynchronous or throws, or JSON in a text.
   */
  #isClean(value: unknown, label: string | undefined): boolean {
    if (typeof value === 'string') return this.#isCleanText(value, label);
    if (typeof value === 'number') return this.#isCleanText(String(value), label);
    if (Array.isArray(value)) return value.every((element) => this.#isClean(element, label));
    if (!isMembers(value)) return true;
    return Object.entries(value).every(
      ([name, member]) => this.#isCleanText(name, undefined) && this.#isClean(member, name),
    );
  }

  #isCleanText(text: string, label: string | undefined): boolean {
    const { plainTexts } = this.#options;
    if (text === '' || (label === undefined && plainTexts?.has(text))) return true;
    if (mayBeJson(text)) return false;
    const timeUp = () => this.#timeUp();
    const options = {
      label,
      // Most rules never look at it.
      get signal() {
        return timeUp();
      },
    };
    try {
      const isClean = this.#rules.every((rule) => {
        const answer = rule.find(text, options);
        if (!isPromise(answer)) return answer.length === 0;
        // Awaited by the search, which gets the same answer.
        answer.catch(() => {});
        return false;
      });
      if (isClean && label === undefined && text.length <= MAX_PLAIN_LENGTH) plainTexts?.add(text);
      return isClean;
    } catch {
      return false;
    }
  }

  /** Lets the rules search the parts. What they find has a number, and the numbers are stored, when this is done; only then a result counts. */
  async #search(parts: readonly Part[]): Promise<void> {
    const found = new Set<string>();
    const counting: Numbering = { numberOf: (kind) => found.add(kind).size };
    const counted = await this.#redactParts(parts, counting);
    const results = found.size > 0 ? await this.#number(parts) : counted;
    const memo = this.#options.memo?.();
    for (const [i, { key, value, path }] of parts.entries()) {
      const redacted = results[i];
      this.#redacted.set(key, redacted === UNSEARCHABLE ? value : redacted);
      if (redacted === UNSEARCHABLE) continue;
      // What was redacted is known when it comes back as well.
      memo?.set(key, redacted).set(redacted === value ? key : this.#keyOf(path, redacted), redacted);
    }
  }

  /** Gives what the rules find its numbers, and stores them. Other processes may number values of the session at the same time. */
  async #number(parts: readonly Part[]): Promise<unknown[]> {
    for (;;) {
      const { numbering, save } = await this.#options.openNumbers();
      const results = await this.#redactParts(parts, numbering);
      if (await save()) return results;
    }
  }

  #keyOf(path: Path, value: unknown): string {
    const { label, except } = this.#settingOf(path);
    const text = stringifyJson([label, except, value]);
    return createHash('sha256').update(text).digest('base64url');
  }

  async #redactParts(parts: readonly Part[], numbering: Numbering): Promise<unknown[]> {
    const results: unknown[] = [];
    for (const part of parts) {
      const redacted = await this.#guarded(placeOf(part.path), () => this.#redactPart(part, numbering));
      results.push(redacted ? freeze(redacted.value) : UNSEARCHABLE);
    }
    return results;
  }

  async #redactPart({ path, value }: Part, numbering: Numbering): Promise<{ value: unknown }> {
    const { label, except } = this.#settingOf(path);
    const named = {};
    setMember(named, label, value);
    const redacted = await redactValue(named, this.#rules, { numbering, except, signal: this.#timeUp() });
    return { value: Object.values(redacted.value)[0] };
  }

  /** Within the time limit of the call. */
  #guarded<T>(place: string, run: () => Promise<T>): Promise<T | undefined> {
    return runRules(this.#settings, place, this.#timeUp(), run);
  }

  #timeUp(): AbortSignal {
    return (this.#deadline ??= AbortSignal.timeout(this.#settings.timeoutMs));
  }

  /** The name that a part stands under, which tells the rules what it is, and the exceptions below that name. */
  #settingOf(path: Path): { label: string; except: string[] } {
    const label = path.findLast((token) => !/^\d+$/.test(token)) ?? 'value';
    const except = (this.#options.except ?? [])
      .filter((tokens) => path.every((token, i) => i >= tokens.length || tokens[i] === '*' || tokens[i] === token))
      .map((tokens) => formatPointer([label, ...tokens.slice(path.length)]));
    return { label, except };
  }
}

/** The result for a part on which a rule failed. */
const UNSEARCHABLE = Symbol('unsearchable');

/** The members of a state whose parts are searched one by one. The name and the value of any other new member are searched together. */
const WALKED_MEMBERS: ReadonlySet<string> = new Set(['messages', 'artifacts', 'custom']);

/** A message or an artifact is one part: it is added as one, and never changed. */
function isWhole(path: Path): boolean {
  return path.length === 2 && (path[0] === 'messages' || path[0] === 'artifacts');
}

/** The place for an error. Names that an application gives may be personal: of the outermost ones only words are quoted, of others none. */
function placeOf(path: Path): string {
  const [name = ''] = path;
  if (!/^[a-z]{1,20}$/i.test(name)) return 'a new member';
  return `'${formatPointer(isWhole(path) ? path : [name])}'`;
}

function isMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Two names can have one placeholder. Both members are kept. */
function freeName(members: object, name: string): string {
  let free = name;
  for (let copy = 2; isOwn(members, free); copy++) free = `${name} (${copy})`;
  return free;
}

type Answer = ReturnType<PrivacyRule['find']>;

/** The rules, which are asked once for each text. */
function rememberAnswers(rules: readonly PrivacyRule[]): PrivacyRule[] {
  /** By label, then by text: those of the rules. */
  const answers = new Map<string | undefined, Map<string, (Answer | undefined)[]>>();
  const answersFor = (text: string, label: string | undefined): (Answer | undefined)[] => {
    let texts = answers.get(label);
    if (!texts) answers.set(label, (texts = new Map()));
    let known = texts.get(text);
    if (!known) texts.set(text, (known = []));
    return known;
  };
  return rules.map((rule, i) => ({
    name: rule.name,
    maxLength: rule.maxLength,
    find: (text, options) => (answersFor(text, options.label)[i] ??= rule.find(text, options)),
  }));
}
