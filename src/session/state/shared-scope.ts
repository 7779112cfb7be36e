import { addressTo, invalidArgument, quote } from '../../errors.ts';
import { copyJson, getMember, setMember, type Json } from '../../json/value.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../../store/contract.ts';
import { formatStateKey } from './state-keys.ts';
import type { StateRules } from './state-values.ts';

/** What `update` calls: gets the value, `undefined` when there is none, and answers the new one, or `undefined` to remove the key. */
export type StateUpdate = (value: Json | undefined) => unknown;

type Operation =
  | { readonly name: string; readonly op: 'set'; readonly value: Json }
  | { readonly name: string; readonly op: 'update'; readonly update: StateUpdate }
  | { readonly name: string; readonly op: 'delete' };

/** A record as a turn sees it: as it was read, with the turn's own changes, which are made on the record as it is when the turn is saved. */
export class SharedScope {
  readonly #id: ScopeId;
  readonly #rules: StateRules;
  /** The record without the turn's changes. */
  #base: ScopeRecord;
  /** The record with them; the same object as long as there are none. */
  #view: ScopeRecord;
  #operations: Operation[] = [];
  /** What each change that was asked for consists of, and the record with it. */
  readonly #asked = new WeakMap<
    ScopeChange,
    { readonly operations: readonly Operation[]; readonly view: ScopeRecord }
  >();
  /** The view is kept in {@link #asked} too: what comes next is done on a copy. */
  #isViewKept = false;

  /** @param record The record as it was read; taken over. */
  constructor(id: ScopeId, record: ScopeRecord, rules: StateRules) {
    this.#id = id;
    this.#rules = rules;
    this.#base = record;
    this.#view = record;
  }

  /** The members, shared: to be read at once. */
  get view(): Readonly<ScopeRecord> {
    return this.#view;
  }

  set(name: string, value: unknown): void {
    const copy = this.#rules.accept({ scope: this.#id.scope, name }, value);
    this.#forget(name);
    this.#do({ name, op: 'set', value: copy });
  }

  update(name: string, update: StateUpdate): void {
    this.#do({ name, op: 'update', update });
  }

  delete(name: string): void {
    this.#forget(name);
    this.#do({ name, op: 'delete' });
  }

  /** What a save is to do to the record; `undefined` when nothing was changed. Later changes are no part of it. */
  change(): ScopeChange | undefined {
    const operations = [...this.#operations];
    if (operations.length === 0) return undefined;
    const change = (record: ScopeRecord): ScopeRecord => {
      for (const operation of operations) perform(record, operation, this.#id, this.#rules);
      return record;
    };
    const scoped: ScopeChange = { id: this.#id, change };
    this.#asked.set(scoped, { operations, view: this.#view });
    this.#isViewKept = true;
    return scoped;
  }

  /** What {@link change} answered is saved; what was changed meanwhile waits for the next save. */
  settle(changes: readonly ScopeChange[]): void {
    for (const change of changes) {
      const asked = this.#asked.get(change);
      if (!asked) continue;
      this.#base = asked.view;
      const saved = new Set(asked.operations);
      this.#operations = this.#operations.filter((operation) => !saved.has(operation));
    }
  }

  /** The turn comes to nothing: its changes are undone. */
  drop(): void {
    this.#operations = [];
    this.#view = this.#base;
  }

  /** Goes on with the record as it was read for the next turn, and what was changed since the last one. */
  renew(record: ScopeRecord): void {
    this.#base = record;
    this.#view = record;
    const waiting = this.#operations;
    this.#operations = [];
    for (const operation of waiting) this.#do(operation);
  }

  #do(operation: Operation): void {
    if (this.#view === this.#base || this.#isViewKept) this.#view = copyJson(this.#view);
    this.#isViewKept = false;
    perform(this.#view, operation, this.#id, this.#rules);
    this.#operations.push(operation);
  }

  /** What is put in the place of a value, or takes it away, makes no difference to what came before. */
  #forget(name: string): void {
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

/** Replaces a member by what `update` answers of it. */
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
    const message = `update(${quote(formatStateKey(place))}) needs a function that answers the value, not a promise: await before the update.`;
    throw addressTo('operator', invalidArgument(message));
  }
  if (answer === undefined) delete record[place.name];
  else setMember(record, place.name, rules.accept(place, answer));
}
