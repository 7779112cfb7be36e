import { isDeepStrictEqual } from 'node:util';
import { applyPatch as applyByGenkit } from 'genkit/beta/client';
import { applyPatch as applyByRfc6902 } from 'rfc6902';
import { expect, test } from 'vitest';
import { applyPatch as applyPatchOfClient } from '../../../src/client/apply-unchecked.ts';
import { applyPatch, applyShared } from '../../../src/json/patch/apply-checked.ts';
import { diff, type JsonPatch } from '../../../src/json/patch/diff.ts';
import { copyJson, type Json, jsonEqual, parseJson, stringifyJson } from '../../../src/json/value.ts';
import { Random } from '../../support/random.ts';
import { scale, seed } from '../../support/scale.ts';
import { deepFreeze, Generator, HOSTILE_KEYS, PLAIN_KEYS } from './generate.ts';

const PAIRS = scale(2_000, 50_000);

/** The members that every object and array inherits, compared before and after. */
function inherited(): unknown[] {
  return [Object.prototype, Array.prototype].map((prototype) => Object.getOwnPropertyDescriptors(prototype));
}

function pairs(count: number, keys: readonly string[], check: (from: Json, to: Json, nth: number) => void): void {
  const generator = new Generator(new Random(seed), keys);
  for (let nth = 0; nth < count; nth++) {
    const from = deepFreeze(generator.value());
    const to = deepFreeze(nth % 2 === 0 ? generator.edited(from) : generator.value());
    try {
      check(from, to, nth);
    } catch (error) {
      throw new Error(`pair ${nth} of seed ${seed}: from ${stringifyJson(from)} to ${stringifyJson(to)}`, {
        cause: error,
      });
    }
  }
}

function mustHold(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function checkPair(from: Json, to: Json): JsonPatch {
  const patch = diff(from, to);
  const received = parseJson(stringifyJson(patch)) as unknown as JsonPatch;
  mustHold(isDeepStrictEqual(received, patch), 'the patch survives its way through JSON');
  mustHold(isDeepStrictEqual(applyPatch(from, received), to), 'applyPatch(from, diff(from, to)) is to');
  mustHold(isDeepStrictEqual(applyShared(from, received), to), 'applyShared(from, diff(from, to)) is to');
  mustHold(isDeepStrictEqual(applyPatchOfClient(from, received), to), 'the client comes to the same');
  mustHold((patch.length === 0) === isDeepStrictEqual(from, to), 'only equal values have no differences');
  mustHold(jsonEqual(from, to) === isDeepStrictEqual(from, to), 'jsonEqual agrees with isDeepStrictEqual');
  mustHold(isDeepStrictEqual(copyJson(to), to), 'a copy is equal');
  return patch;
}

test(`patch fuzz: ${PAIRS} pairs with hostile keys have the right result and nothing is polluted (seed ${seed})`, () => {
  const before = inherited();
  pairs(PAIRS, HOSTILE_KEYS, checkPair);
  expect(isDeepStrictEqual(inherited(), before)).toBe(true);
});

test(`patch fuzz: ${PAIRS} pairs with plain keys have the right result, in another implementation too (seed ${seed})`, () => {
  pairs(PAIRS, PLAIN_KEYS, (from, to, nth) => {
    checkPair(from, to);
    if (nth % 5 !== 0) return;
    // Wrapped, because that implementation changes a document in place and so can't replace it.
    const document = { root: structuredClone(from) };
    const errors = applyByRfc6902(document, structuredClone(diff({ root: from }, { root: to })) as never);
    mustHold(
      errors.every((error) => error === null),
      'npm rfc6902 takes every operation',
    );
    mustHold(isDeepStrictEqual(document, { root: to }), 'npm rfc6902 comes to the same result');
  });
});

test(`patch fuzz: Genkit’s client applies ${PAIRS} patches about keys that it refuses in a path (seed ${seed})`, () => {
  const keys = ['__proto__', 'constructor', 'prototype', 'a', 'b'];
  pairs(PAIRS, keys, (from, to) => {
    const received = structuredClone(diff(from, to));
    mustHold(isDeepStrictEqual(applyByGenkit(structuredClone(from), received), to), 'it comes to the same result');
  });
});

test(`patch fuzz: neither the patch nor its result shares anything with the values (seed ${seed})`, () => {
  pairs(scale(200, 2_000), HOSTILE_KEYS, (from, to) => {
    const patch = diff(from, to);
    const taken = [...containersOf(from), ...containersOf(to)];
    const ofPatch = containersOf(patch);
    const ofResult = containersOf(applyPatch(from, patch));
    mustHold(!taken.some((container) => ofPatch.has(container)), 'the patch is its own');
    mustHold(![...taken, ...ofPatch].some((container) => ofResult.has(container)), 'the result is its own');
  });
});

function containersOf(value: unknown, into = new Set<unknown>()): Set<unknown> {
  if (typeof value !== 'object' || value === null) return into;
  into.add(value);
  for (const member of Object.values(value)) containersOf(member, into);
  return into;
}
