import { createHash } from 'node:crypto';
import { invalidArgument } from '../../errors.ts';
import { countSame } from '../../json/count-same.ts';
import { isMembers } from '../../json/fault.ts';
import { freeze } from '../../json/immutable.ts';
import { formatPointer } from '../../json/pointer.ts';
import { freeName } from '../../json/replace-texts.ts';
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

/** A part of a value that the rules still have to search. */
interface Part {
  readonly path: Path;
  readonly value: unknown;
  /** A hash of all that the result depends on, except the numbers. */
  readonly key: string;
}

/** Thrown by a function that a store runs, if asynchronous work has to be done first. {@link retryWhenReady} then calls the store again. */
export class AsyncWorkNeeded extends Error {
  constructor(readonly work: () => Promise<void>) {
    super('Something has to be done before this can be saved.');
  }
}

/** More rounds than a save needs, even if many writers change the same snapshot at once. */
const MAX_ROUNDS = 1000;

/**
 * Makes the call. After each {@link AsyncWorkNeeded}, does the work and calls again.
 *
 * @throws `INVALID_ARGUMENT` when the last round throws {@link AsyncWorkNeeded}, too.
 */
export async function retryWhenReady<T>(call: () => Promise<T>): Promise<T> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof AsyncWorkNeeded)) throw error;
      await error.work();
    }
  }
  throw invalidArgument(
    'The mutator returns a different text each time it runs, for example the time, so no rule can search it before the save. Create the text before the save.',
  );
}

/** The rules search longer texts each time. */
const MAX_PLAIN_LENGTH = 64;

export interface RedactionOptions {
  readonly openNumbers: () => Promise<OpenNumbers>;
  /** Redacted parts of earlier calls with the same numbers. Default: none. */
  readonly memo?: () => Map<string, unknown>;
  /** Ids and names in which the rules found nothing in earlier calls. Default: none. */
  readonly plainTexts?: Set<string>;
  /** Parts that stay as they are. Default: none. */
  readonly except?: readonly Path[];
  /** Whether the runtime generated this text, number or name of a member, so that no rule gets it. Default: never. */
  readonly isGenerated?: (text: string, path: Path) => boolean;
}

/**
 * Redacts the values of one call of a store. Rules may be asynchronous, but a store runs mutators synchronously, maybe more than once. So
 * {@link apply} inserts the known results, and throws {@link AsyncWorkNeeded} if the rules have to search something first.
 *
 * Only differences from the stored value are searched: the stored value was redacted when it was saved.
 */
export class Redaction {
  readonly #settings: RedactingSettings;
  readonly #options: RedactionOptions;
  readonly #rules: readonly PrivacyRule[];
  /** The redacted parts of this call, by key. */
  readonly #redacted = new Map<string, unknown>();
  #deadline: AbortSignal | undefined;
  #mayRunRules = false;

  constructor(settings: RedactingSettings, options: RedactionOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#rules = memoizeRules(settings.rules);
  }

  /**
   * The value with placeholders. Parts that are the same objects as in `base` are kept.
   *
   * @param value JSON that never changes.
   * @param options.inStore Whether a store waits for the result, perhaps with a lock: then no rule runs. Default: true.
   * @throws AsyncWorkNeeded when a part was not searched.
   */
  apply<T>(base: unknown, value: T, { inStore = true } = {}): T {
    this.#mayRunRules = !inStore;
    const unsearched: Part[] = [];
    const redacted = this.#walk(base, value, [], unsearched);
    if (unsearched.length > 0) throw new AsyncWorkNeeded(() => this.#search(unsearched));
    return redacted as T;
  }

  /** Lets the rules search everything, then calls {@link apply}. */
  redact<T>(base: unknown, value: T): Promise<T> {
    return retryWhenReady(async () => this.apply(base, value, { inStore: false }));
  }

  /** @throws `INVALID_ARGUMENT` when a rule finds something in an id: ids are stored as they are. */
  async assertPlainIds(ids: Readonly<Record<string, string | undefined>>): Promise<void> {
    for (const [name, id] of Object.entries(ids)) {
      if (typeof id !== 'string' || id === '') continue;
      const answer = await this.#guarded(`the ${name}`, () => redactText(id, this.#rules, { signal: this.#signal() }));
      if (!answer || answer.findings.length === 0) continue;
      const kinds = [...new Set(answer.findings.map(({ kind }) => kind))].join(', ');
      throw invalidArgument(`The ${name} holds personal data (${kinds}). Ids are stored unchanged. Use another one.`);
    }
  }

  #walk(base: unknown, value: unknown, path: Path, unsearched: Part[]): unknown {
    if (value === base || typeof value === 'boolean' || value === null || value === undefined) return value;
    if (typeof value !== 'object') return this.#lookUp(path, value, unsearched);
    if (isWhole(path)) return this.#lookUp(path, value, unsearched);
    // The outermost levels are walked even without a base, so that the cached parts are those that later calls look up.
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

  /** Whether members are searched one by one. A mutator may return a new time on each run; a part with it would be searched each time. */
  get #isDeep(): boolean {
    return this.#options.isGenerated !== undefined;
  }

  #walkElements(base: readonly unknown[], value: readonly unknown[], path: Path, unsearched: Part[]): unknown {
    let redacted: unknown[] | undefined;
    // Skips the elements that are stored already: nearly all of a long session.
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
    if (isScalar && this.#options.isGenerated?.(String(value), path)) return value;
    const key = this.#keyOf(path, value);
    if (this.#redacted.has(key)) return this.#redacted.get(key);
    const memo = this.#options.memo?.();
    if (memo?.has(key)) return memo.get(key);
    if (this.#mayRunRules && this.#isClean(value, this.#settingOf(path).label)) {
      memo?.set(key, freeze(value));
      return value;
    }
    unsearched.push({ path, value, key });
    return value;
  }

  /**
   * Whether the rules synchronously find nothing in the value and the names of its members, as in nearly all values. Also `false` if a rule
   * is asynchronous or throws, or if a text may be JSON; `#search` decides then.
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
    const deadlineSignal = () => this.#signal();
    const options = {
      label,
      // Created when a rule reads it; most rules don't.
      get signal() {
        return deadlineSignal();
      },
    };
    try {
      const isClean = this.#rules.every((rule) => {
        const answer = rule.find(text, options);
        if (!isPromise(answer)) return answer.length === 0;
        // `#search` gets the same promise and handles its error.
        answer.catch(() => {});
        return false;
      });
      if (isClean && label === undefined && text.length <= MAX_PLAIN_LENGTH) plainTexts?.add(text);
      return isClean;
    } catch {
      return false;
    }
  }

  /** Lets the rules search the parts. The results are kept only after the numbers of all findings are stored. */
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
      // The redacted value is known, too: later turns save it again.
      memo?.set(key, redacted).set(redacted === value ? key : this.#keyOf(path, redacted), redacted);
    }
  }

  /** Numbers the findings and stores the numbers. Begins again if another process has added numbers to the session meanwhile. */
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
    const redacted = await redactValue(named, this.#rules, { numbering, except, signal: this.#signal() });
    return { value: Object.values(redacted.value)[0] };
  }

  /** Runs rules within the time limit of the call. */
  #guarded<T>(place: string, run: () => Promise<T>): Promise<T | undefined> {
    return runRules(this.#settings, place, this.#signal(), run);
  }

  #signal(): AbortSignal {
    return (this.#deadline ??= AbortSignal.timeout(this.#settings.timeoutMs));
  }

  /** The name of the nearest member around a part, as a hint for the rules, and the exceptions below it. */
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

/** Whether this is a message or an artifact. Each is one part, because it is added as a whole and never changed. */
function isWhole(path: Path): boolean {
  return path.length === 2 && (path[0] === 'messages' || path[0] === 'artifacts');
}

/** The place for an error. Names of members may be personal data, so an outermost name is quoted only if it is a word, others never. */
function placeOf(path: Path): string {
  const [name = ''] = path;
  if (!/^[a-z]{1,20}$/i.test(name)) return 'a new member';
  return `'${formatPointer(isWhole(path) ? path : [name])}'`;
}

type Answer = ReturnType<PrivacyRule['find']>;

/** Wraps the rules so that each runs once for each text. */
function memoizeRules(rules: readonly PrivacyRule[]): PrivacyRule[] {
  /** By label, then by text, then by index of the rule. */
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
