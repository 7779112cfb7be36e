import { describe, expect, it } from 'vitest';
import { capabilitiesOf, FOREIGN_CAPABILITIES, type SessionStore } from '../../../src/store/contract.ts';
import { checkOptions, isBoolean, isFunction, isOneOf, isWhole } from '../../../src/store/check-options.ts';
import { DEFAULT_TENANT, nameTenant } from '../../../src/store/name-tenant.ts';

const CHECKS = { flag: isBoolean, prefix: isFunction, count: isWhole(1), durability: isOneOf('full', 'fast') };
const check = (options: unknown): void => checkOptions('Store', options as object, CHECKS);

describe('checkOptions', () => {
  it('takes what is right, and what is left away', () => {
    for (const good of [
      undefined,
      {},
      { flag: true, count: 3, durability: 'fast', prefix: () => 'x' },
      { flag: undefined },
    ]) {
      expect(() => check(good)).not.toThrow();
    }
  });

  it.each([
    [{ flga: true }, "Store has no option 'flga': did you mean 'flag'? It has flag, prefix, count, durability."],
    [{ toString: 1 }, "Store has no option 'toString'"],
    [{ flag: 1 }, 'Store: flag must be true or false.'],
    [{ prefix: 'x' }, 'Store: prefix must be a function.'],
    [{ count: 0 }, 'Store: count must be a whole number of at least 1.'],
    [{ count: '3' }, 'Store: count must be a whole number of at least 1.'],
    [{ durability: 'slow' }, "Store: durability must be 'full' or 'fast'."],
    [null, 'Store: options must be an object.'],
    ['x', 'Store: options must be an object.'],
  ])('refuses %j in one sentence', (options, message) => {
    expect(() => check(options)).toThrow(message);
  });
});

describe('nameTenant', () => {
  it('is the default one without a prefix, else what the prefix says, word for word', () => {
    expect(nameTenant(undefined, { context: { uid: 'x' } })).toBe(DEFAULT_TENANT);
    expect(nameTenant((options) => `../${String(options?.context?.['uid'])} `, { context: { uid: 'É' } })).toBe(
      '../É ',
    );
  });

  it.each([undefined, null, '', ' ', 7, {}])('refuses a prefix that answers %j', (answer) => {
    expect(() => nameTenant(() => answer as string, undefined)).toThrow(/name of a tenant|tenant prefix/);
  });

  it('refuses a promise, and leaves no rejection behind when that fails', async () => {
    const failing = Promise.reject(new Error('never seen'));
    expect(() => nameTenant(() => failing as unknown as string, undefined)).toThrow('promise');
    await expect(failing).rejects.toThrow('never seen');
  });
});

describe('capabilitiesOf', () => {
  it('answers what a store declares, else what a foreign store is known to have', () => {
    const declared = { ...FOREIGN_CAPABILITIES, list: true };
    const foreign: SessionStore = { getSnapshot: async () => undefined, saveSnapshot: async () => null };
    expect(capabilitiesOf({ ...foreign, capabilities: declared } as SessionStore)).toBe(declared);
    expect(capabilitiesOf(foreign)).toEqual(FOREIGN_CAPABILITIES);
    expect(capabilitiesOf({ ...foreign, onSnapshotStateChange: () => {} })).toEqual({
      ...FOREIGN_CAPABILITIES,
      watch: true,
    });
  });
});
