import { addressTo, invalidArgument, quote } from '../../errors.ts';
import { copyJson, getMember, setMember, type Json } from '../../json/value.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../../store/contract.ts';
import { formatStateKey, type StateKey } from './state-keys.ts';
import type { StateRules } from './state-values.ts';

/** Called by `update`: gets the value, `undefined` when there is none, and returns the new one, or `undefined` to remove the key. */
export type StateUpdate = (value: Json | undefined) => unknown;

/** A change of one member: computes its new value from the current one; `undefined` stands for no member. */
interface Operation {
  readonly name: string;
  readonly next: (value: Json | undefined) => Json | undefined;
}

/**
 * A record during a turn, with the turn's changes. When the turn is saved, the changes are applied again, to the record as it is then. Records
 * are never changed: each change makes a new one.
 */
export class SharedScope {
  readonly #id: ScopeId;
  readonly #rules: StateRules;
  /** The record without the turn's changes. */
  #base: ScopeRecord;
  /** The record with the turn's changes. */
  #view: ScopeRecord;
  #operations: Operation[] = [];
  /** The operations of each change that {@link change} returned, and the record after them: as the save made it, once it has. */
  readonly #returned = new WeakMap<ScopeChange, { readonly operations: readonly Operation[]; view: ScopeRecord }>();

  /** @param record The record as it was read; taken over without a copy. */
  constructor(id: ScopeId, record: ScopeRecord, rules: StateRules) {
    this.#id = id;
    this.#rules = rules;
    this.#base = record;
    this.#view = record;
  }

  /** The members, shared: read them synchronously. */
  get view(): Readonly<ScopeRecord> {
    return this.#view;
  }

  set(name: string, value: unknown): void {
    const copy = this.#rules.accept({ scope: this.#id.scope, name }, value);
    this.#dropEarlier(name);
    this.#apply({ name, next: () => copy });
  }

  update(name: string, update: StateUpdate): void {
    const place = { scope: this.#id.scope, name };
    this.#apply({ name, next: (value) => updatedValue(value, update, place, this.#rules) });
  }

  delete(name: string): void {
    this.#dropEarlier(name);
    this.#apply({ name, next: () => undefined });
  }

  /** The change that a save must apply to the record; `undefined` when there is none. Later changes are not included. */
  change(): ScopeChange | undefined {
    const operations = [...this.#operations];
    if (operations.length === 0) return undefined;
    const returned = { operations, view: this.#view };
    const change = (record: ScopeRecord): ScopeRecord => {
      returned.view = operations.reduce(changed, record);
      return copyJson(returned.view);
    };
    const scoped: ScopeChange = { id: this.#id, change };
    this.#returned.set(scoped, returned);
    return scoped;
  }

  /** Marks changes returned by {@link change} as saved; later changes wait for the next save. */
  markSaved(changes: readonly ScopeChange[]): void {
    for (const change of changes) {
      const returned = this.#returned.get(change);
      if (!returned) continue;
      this.#base = returned.view;
      const saved = new Set(returned.operations);
      this.#operations = this.#operations.filter((operation) => !saved.has(operation));
      if (this.#operations.length === 0) this.#view = this.#base;
    }
  }

  /** Undoes the changes of a turn that did not complete. */
  drop(): void {
    this.#operations = [];
    this.#view = this.#base;
  }

  /** Continues with the record read for the next turn, and the changes since the last save. */
  renew(record: ScopeRecord): void {
    this.#base = record;
    this.#view = record;
    const waiting = this.#operations;
    this.#operations = [];
    for (const operation of waiting) this.#apply(operation);
  }

  #apply(operation: Operation): void {
    this.#view = changed(this.#view, operation);
    this.#operations.push(operation);
  }

  /** Drops earlier operations on the key, because a set or delete does not depend on them. */
  #dropEarlier(name: string): void {
    this.#operations = this.#operations.filter((operation) => operation.name !== name);
  }
}

function changed(record: ScopeRecord, { name, next }: Operation): ScopeRecord {
  const value = next(getMember(record, name) as Json | undefined);
  const result = { ...record };
  if (value === undefined) delete result[name];
  else setMember(result, name, value);
  return result;
}

/** The result of `update`, copied and checked. */
export function updatedValue(
  value: Json | undefined,
  update: StateUpdate,
  place: StateKey,
  rules: StateRules,
): Json | undefined {
  const answer = update(value === undefined ? undefined : copyJson(value));
  if (answer instanceof Promise) {
    answer.catch(() => {});
    const message = `update(${quote(formatStateKey(place))}) needs a function that returns the value, not a promise. Await before the update.`;
    throw addressTo('operator', invalidArgument(message));
  }
  return answer === undefined ? undefined : rules.accept(place, answer);
}
