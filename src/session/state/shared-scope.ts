import { addressTo, invalidArgument, quote } from '../../errors.ts';
import { copyJson, getMember, setMember, type Json } from '../../json/value.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../../store/contract.ts';
import { formatStateKey } from './state-keys.ts';
import type { StateRules } from './state-values.ts';

/** Called by `update`: gets the value, `undefined` when there is none, and returns the new one, or `undefined` to remove the key. */
export type StateUpdate = (value: Json | undefined) => unknown;

type Operation =
  | { readonly name: string; readonly op: 'set'; readonly value: Json }
  | { readonly name: string; readonly op: 'update'; readonly update: StateUpdate }
  | { readonly name: string; readonly op: 'delete' };

/** A record during a turn, with the turn's changes. When the turn is saved, the changes are applied again, to the record as it is then. */
export class SharedScope {
  readonly #id: ScopeId;
  readonly #rules: StateRules;
  /** The record without the turn's changes. */
  #base: ScopeRecord;
  /** The record with the turn's changes; the same object as `#base` while there are none. */
  #view: ScopeRecord;
  #operations: Operation[] = [];
  /** The operations of each change that {@link change} returned, and the record after them: as the save made it, once it has. */
  readonly #returned = new WeakMap<ScopeChange, { readonly operations: readonly Operation[]; view: ScopeRecord }>();
  /** The view is also stored in {@link #returned}, so the next change must copy it first. */
  #isViewKept = false;

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
    this.#apply({ name, op: 'set', value: copy });
  }

  update(name: string, update: StateUpdate): void {
    this.#apply({ name, op: 'update', update });
  }

  delete(name: string): void {
    this.#dropEarlier(name);
    this.#apply({ name, op: 'delete' });
  }

  /** The change that a save must apply to the record; `undefined` when there is none. Later changes are not included. */
  change(): ScopeChange | undefined {
    const operations = [...this.#operations];
    if (operations.length === 0) return undefined;
    const returned = { operations, view: this.#view };
    const change = (record: ScopeRecord): ScopeRecord => {
      for (const operation of operations) perform(record, operation, this.#id, this.#rules);
      returned.view = copyJson(record);
      return record;
    };
    const scoped: ScopeChange = { id: this.#id, change };
    this.#returned.set(scoped, returned);
    this.#isViewKept = true;
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
    if (this.#view === this.#base || this.#isViewKept) this.#view = copyJson(this.#view);
    this.#isViewKept = false;
    perform(this.#view, operation, this.#id, this.#rules);
    this.#operations.push(operation);
  }

  /** Drops earlier operations on the key, because a set or delete does not depend on them. */
  #dropEarlier(name: string): void {
    this.#operations = this.#operations.filter((operation) => operation.name !== name);
  }
}

function perform(record: ScopeRecord, operation: Operation, id: ScopeId, rules: StateRules): void {
  const { name } = operation;
  if (operation.op === 'update') {
    putUpdated(record, operation.update, { scope: id.scope, name }, rules);
  } else if (operation.op === 'set') {
    setMember(record, name, copyJson(operation.value));
  } else {
    delete record[name];
  }
}

/** Replaces a member by the result of `update`. */
export function putUpdated(
  record: ScopeRecord,
  update: StateUpdate,
  place: { readonly scope: 'session' | 'temp' | ScopeId['scope']; readonly name: string },
  rules: StateRules,
): void {
  const current = getMember(record, place.name) as Json | undefined;
  const answer = update(current === undefined ? undefined : copyJson(current));
  if (answer instanceof Promise) {
    answer.catch(() => {});
    const message = `update(${quote(formatStateKey(place))}) needs a function that returns the value, not a promise. Await before the update.`;
    throw addressTo('operator', invalidArgument(message));
  }
  if (answer === undefined) delete record[place.name];
  else setMember(record, place.name, rules.accept(place, answer));
}
