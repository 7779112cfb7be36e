/** Random bodies: each gets a well-formed answer of its own, and only valid ones run. */
import * as fc from 'fast-check';
import { AgentInitSchema, AgentInputSchema } from 'genkit/beta';
import { validateSchema } from 'genkit/schema';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it } from 'vitest';
import { random, scale } from '../../support/scale.ts';
import { catchErrorLog } from '../support/log.ts';
import { mutate } from '../support/mutate.ts';
import { stubAgent } from '../support/stub-agent.ts';

const errorLog = catchErrorLog();
const RUNS = random(1500, 20_000);

const agent = stubAgent('a', () => ({ finishReason: 'stop' }));
const handler = agentHandler([agent], { anonymous: true, maxBodyBytes: 4096, maxDepth: 20 });

const part = fc.oneof(
  fc.record({ text: fc.string() }),
  fc.record({ data: fc.jsonValue() }),
  fc.record({ toolRequest: fc.record({ name: fc.string(), ref: fc.string(), input: fc.jsonValue() }) }),
  fc.record({ reasoning: fc.string() }),
);
const valid = fc.record(
  {
    data: fc.record(
      {
        message: fc.record({
          role: fc.constantFrom('user', 'model', 'tool', 'system'),
          content: fc.array(part, { maxLength: 3 }),
        }),
        detach: fc.boolean(),
        resume: fc.record({
          respond: fc.array(fc.record({ toolResponse: fc.record({ name: fc.string() }) }), { maxLength: 2 }),
        }),
      },
      { requiredKeys: [] },
    ),
    init: fc.record(
      { snapshotId: fc.string(), sessionId: fc.string(), state: fc.record({ custom: fc.jsonValue() }) },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['data'] },
);

const nearlyValid = fc
  .tuple(valid, fc.array(fc.nat(9), { maxLength: 5 }), fc.jsonValue())
  .map(([body, path, by]) => mutate(body, path, by));

const encoder = new TextEncoder();
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.json().map((text) => encoder.encode(text)),
  fc.oneof(valid, nearlyValid).map((body) => encoder.encode(JSON.stringify(body))),
  // A valid body with one byte changed or the end cut off.
  fc.tuple(valid, fc.nat(), fc.nat(255)).map(([body, at, byte]) => {
    const text = encoder.encode(JSON.stringify(body));
    text[at % text.length] = byte;
    return text;
  }),
  fc.tuple(valid, fc.nat()).map(([body, at]) => {
    const text = encoder.encode(JSON.stringify(body));
    return text.slice(0, at % text.length);
  }),
);

function isValid(body: Uint8Array): boolean {
  try {
    const { data, init = {} } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as {
      data: unknown;
      init?: unknown;
    };
    const fits =
      validateSchema(data, { schema: AgentInputSchema }).valid &&
      validateSchema(init, { schema: AgentInitSchema }).valid;
    const { message, resume, detach } = (data ?? {}) as Record<string, unknown>;
    const { snapshotId, sessionId, state } = init as Record<string, string | undefined>;
    if (!message && !resume && !detach && (snapshotId ?? sessionId ?? state) === undefined) return false;
    return fits && [snapshotId, sessionId].every((id) => id === undefined || id.trim() !== '');
  } catch {
    return false;
  }
}

describe('HTTP: fuzz', () => {
  it(
    `${RUNS.numRuns} random bodies get 200 when they are valid and 400 or 413 when not (seed ${RUNS.seed})`,
    { timeout: scale(300_000, 3_600_000) },
    async () => {
      const seen = new Map<number, number>();
      await fc.assert(
        fc.asyncProperty(bytes, fc.boolean(), async (body, stream) => {
          const runsBefore = agent.runs.length;
          const response = await handler(
            new Request('http://agents.test/a', {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...(stream && { accept: 'text/event-stream' }) },
              body: body as BodyInit,
            }),
          );
          const text = await response.text();
          seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
          if (response.status === 200) {
            expect(isValid(body)).toBe(true);
            expect(agent.runs.length).toBe(runsBefore + 1);
          } else {
            expect(response.status).toBe(body.length > 4096 ? 413 : 400);
            expect(isValid(body) && body.length <= 4096).toBe(false);
            expect(agent.runs.length).toBe(runsBefore);
            const { error } = JSON.parse(text) as { error: { status: string; message: string } };
            expect(error.status).toBe('INVALID_ARGUMENT');
            expect(error.message).not.toMatch(/\bat .*:\d+|node_modules/);
          }
        }),
        RUNS,
      );
      expect(seen.get(200)).toBeGreaterThan(100);
      expect(seen.get(400)).toBeGreaterThan(100);
      expect(errorLog()).toBe('');
    },
  );
});
