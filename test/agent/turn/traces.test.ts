import { genkit } from 'genkit/beta';
import { defineCustomAgent, InMemorySessionStore } from 'genkitx-agents';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { collectSpans, type Span } from '../../support/spans.ts';
import { call, model } from '../support/helpers.ts';

let spans: Span[];
beforeAll(async () => {
  spans = await collectSpans();
});
beforeEach(() => {
  spans.length = 0;
});

test('spans name the session and the snapshots, and a failed turn is marked; none of them holds the state', async () => {
  const ai = genkit({});
  const agent = defineCustomAgent<{ secret: string }>(
    ai,
    { name: 'traced', store: new InMemorySessionStore() },
    async (sess) => {
      await sess.run(async (input) => {
        sess.updateCustom(() => ({ secret: 'state-of-the-session' }));
        sess.addMessages([model('said-in-the-session')]);
        if (input.message?.content[0]?.text === 'fail')
          throw Object.assign(new Error('went wrong'), { stack: 'stack-of-the-cause' });
      });
      return {};
    },
  );
  const { chunks, output } = await call(agent, ['one', 'two', 'fail']);
  const ids = chunks.flatMap(({ turnEnd }) => turnEnd?.snapshotId ?? []);
  const named = (name: string) => spans.find((span) => span.name === name);
  expect(named('traced')?.attributes['genkit:metadata:agent:sessionId']).toBe(output.sessionId);
  expect([1, 2, 3].map((n) => named(`runTurn-${n}`)?.attributes['genkit:metadata:agent:snapshotId'])).toEqual(ids);
  expect(named('runTurn-1')?.attributes['genkit:input']).toContain('"one"');
  expect(named('runTurn-3')).toMatchObject({
    attributes: { 'genkit:state': 'error' },
    status: { message: 'INTERNAL: went wrong' },
  });
  for (const span of spans) {
    const text = JSON.stringify([span.attributes, span.status, span.events]);
    expect(text).not.toMatch(/state-of-the-session|said-in-the-session|stack-of-the-cause/);
  }
});

test('the span of a turn holds the state when the agent says so, without what is temporary', async () => {
  const config = { name: 'shown', store: new InMemorySessionStore(), traceState: true };
  const agent = defineCustomAgent<{ shown: string }>(genkit({}), config, async (sess) => {
    await sess.run(async () => {
      sess.updateCustom(() => ({ shown: 'in-the-state' }));
      sess.state.set('temp:a', 'for-this-turn');
    });
    return {};
  });
  const { output } = await call(agent, ['one']);
  const span = spans.find(({ name }) => name === 'runTurn-1');
  expect(JSON.parse(String(span?.attributes['genkit:output']))).toMatchObject({
    state: { sessionId: output.sessionId, custom: { shown: 'in-the-state' } },
  });
  expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toContain('for-this-turn');
});
