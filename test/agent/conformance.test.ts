import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { conformanceAgents, type ConformanceAgents } from './conformance-agents.ts';
import { ALL_STORE_KINDS } from './stores.ts';

type Data = Record<string, unknown>;

interface Step extends Data {
  type: 'send' | 'getSnapshotData' | 'abort' | 'waitUntilCompleted';
  inputs?: Data[];
  streamChunks?: Data[][];
  modelResponses?: Data[];
  expectChunks?: Data[];
  expectOutput?: Data;
  expectError?: { status: string; message: string };
  expectSnapshot?: Data;
}

interface Case {
  name: string;
  agent: string;
  steps: Step[];
}

const FILE = join(import.meta.dirname, '../../../shared/conformance/agent.yaml');

const cases = existsSync(FILE) ? (parse(readFileSync(FILE, 'utf8')) as { tests: Case[] }).tests : [];

describe.skipIf(cases.length === 0)(
  "Genkit's conformance cases (skipped where their file does not lie beside the checkout)",
  () => {
    describe.each(ALL_STORE_KINDS)('on $name', ({ make }) => {
      for (const { name, agent, steps } of cases) {
        test(name, async () => {
          const harness = new Harness(await conformanceAgents(make), agent);
          for (const step of steps) await harness.run(step);
        });
      }
    });
  },
);

/** Runs the steps of one case. */
class Harness {
  readonly #model: ConformanceAgents['model'];
  readonly #agent: ConformanceAgents['agents'][string];
  readonly #captured = new Map<string, unknown>();

  constructor({ model, agents }: ConformanceAgents, name: string) {
    const agent = agents[name];
    if (!agent) throw new Error(`The cases name an agent that the harness lacks: ${name}`);
    this.#model = model;
    this.#agent = agent;
  }

  async run(raw: Step): Promise<void> {
    const step = this.#filledIn(raw) as Step;
    const lookup = { snapshotId: step['snapshotId'] as string, sessionId: step['sessionId'] as string };
    switch (step.type) {
      case 'send':
        return this.#send(step);
      case 'getSnapshotData':
        return expectSnapshot(await this.#agent.getSnapshotData(lookup), step.expectSnapshot ?? {});
      case 'abort':
        expect(await this.#agent.abort(lookup.snapshotId)).toBe(step['expectPreviousStatus'] ?? undefined);
        return;
      case 'waitUntilCompleted':
        await vi.waitUntil(async () => (await this.#agent.getSnapshotData(lookup))?.status !== 'pending');
        return expectSnapshot(await this.#agent.getSnapshotData(lookup), step.expectSnapshot ?? {});
    }
  }

  async #send(step: Step): Promise<void> {
    this.#model.reset();
    for (const [i, response] of (step.modelResponses ?? []).entries()) {
      this.#model.reply({ ...response, chunks: step.streamChunks?.[i] ?? [] } as never);
    }
    const call = this.#agent.streamBidi(step['init'] as never);
    for (const input of step.inputs ?? []) call.send(input);
    call.close();
    const chunks: Data[] = [];
    const read = async () => {
      for await (const chunk of call.stream) chunks.push(chunk);
    };
    if (step.expectError) {
      const { status, message } = step.expectError;
      await expect(Promise.all([call.output, read()])).rejects.toMatchObject({
        status,
        message: expect.stringContaining(message) as string,
      });
      return;
    }
    const [output] = await Promise.all([call.output, read()]);
    if (step.expectChunks) expectChunks(JSON.parse(JSON.stringify(chunks)) as Data[], step.expectChunks);
    if (step.expectOutput) expectOutput(output, step.expectOutput);
    const state = output.state as Data | undefined;
    this.#capture(step['captureSnapshotId'], output.snapshotId);
    this.#capture(step['captureState'], state);
    this.#capture(step['captureSessionId'], state?.['sessionId']);
  }

  #capture(name: unknown, value: unknown): void {
    if (typeof name !== 'string') return;
    expect(value, `nothing to capture as ${name}`).toBeDefined();
    this.#captured.set(name, value);
  }

  /** The value with `'{{name}}'` replaced by what was captured. */
  #filledIn(value: unknown): unknown {
    if (typeof value === 'string') {
      const name = /^\{\{(.+)\}\}$/.exec(value)?.[1];
      return name === undefined ? value : this.#captured.get(name);
    }
    if (Array.isArray(value)) return value.map((item) => this.#filledIn(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#filledIn(member)]));
  }
}

function expectChunks(actual: Data[], expected: Data[]): void {
  expect(actual, JSON.stringify(actual)).toHaveLength(expected.length);
  for (const [i, want] of expected.entries())
    expect(contains(actual[i], want), `chunk ${i}: ${JSON.stringify(actual[i])}`).toBe(true);
}

function expectOutput(output: Data, expected: Data): void {
  const state = output['state'] as Data | undefined;
  for (const [check, want] of Object.entries(expected)) {
    const where = `${check} in ${JSON.stringify(output)}`;
    if (check === 'hasSnapshotId') expect(Boolean(output['snapshotId']), where).toBe(want);
    else if (check === 'hasSessionId') expect(Boolean(state?.['sessionId']), where).toBe(want);
    else if (check === 'stateContains') expectState(state, want as Data);
    else if (check === 'artifactsContain') expectAmong(output['artifacts'], want as Data[]);
    else if (check === 'errorContains') expectError(output['error'], want as Data);
    else expect(contains(output[check], want), where).toBe(true);
  }
}

function expectSnapshot(snapshot: unknown, expected: Data): void {
  const actual = snapshot as Data;
  expect(actual).toBeDefined();
  for (const [check, want] of Object.entries(expected)) {
    if (check === 'hasSessionId') expect(Boolean((actual['state'] as Data)['sessionId'])).toBe(want);
    else if (check === 'stateContains') expectState(actual['state'], want as Data);
    else if (check === 'errorContains') expectError(actual['error'], want as Data);
    else expect(actual[check], check).toEqual(want);
  }
}

function expectError(error: unknown, want: Data): void {
  const { status, message } = error as Data;
  if (want['status'] !== undefined) expect(status).toBe(want['status']);
  if (want['message'] !== undefined) expect(message).toContain(want['message']);
}

function expectState(state: unknown, want: Data): void {
  const actual = state as Data;
  for (const [key, value] of Object.entries(want)) {
    if (key === 'messages') expectSubsequence(actual['messages'] as Data[], value as Data[]);
    else if (key === 'artifacts') expectAmong(actual['artifacts'], value as Data[]);
    else expect(contains(actual[key], value), `${key} in ${JSON.stringify(actual)}`).toBe(true);
  }
}

function expectSubsequence(actual: Data[], want: Data[]): void {
  let next = 0;
  for (const message of actual) {
    if (next < want.length && contains(message, want[next])) next++;
  }
  expect(next, `messages in order: ${JSON.stringify(actual)}`).toBe(want.length);
}

function expectAmong(actual: unknown, want: Data[]): void {
  for (const item of want)
    expect(
      (actual as Data[]).some((other) => contains(other, item)),
      JSON.stringify(actual),
    ).toBe(true);
}

/** Whether `actual` has all that `want` lists: members of objects, elements of arrays one by one. */
function contains(actual: unknown, want: unknown): boolean {
  if (Array.isArray(want)) {
    return Array.isArray(actual) && actual.length === want.length && want.every((item, i) => contains(actual[i], item));
  }
  if (typeof want !== 'object' || want === null) return actual === want;
  if (typeof actual !== 'object' || actual === null) return false;
  return Object.entries(want).every(([key, value]) => contains((actual as Data)[key], value));
}
