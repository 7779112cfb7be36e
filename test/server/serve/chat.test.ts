/** A chat over a transport with scripted turns. */
import { getEventListeners } from 'node:events';
import { GenkitError } from 'genkit';
import type { AgentChunk, AgentOutput, AgentStreamChunk, SessionSnapshot } from 'genkit/beta/client';
import { AgentError, type AgentAPI } from 'genkitx-agents/client';
import { describe, expect, it, vi } from 'vitest';
import { createAgentApi } from '../../../src/client/chat/agent-api.ts';
import { Session } from '../../../src/session/session.ts';
import { gate } from '../support/agents.ts';
import { refusal } from '../support/refusal.ts';
import { scriptedTransport, type Script } from '../support/scripted-transport.ts';
import { collect } from '../../support/collect.ts';

interface Counter {
  count: number;
}

const text = (content: string): AgentStreamChunk => ({ modelChunk: { content: [{ text: content }] } });
const rebase = (count: number): AgentStreamChunk => ({ customPatch: [{ op: 'replace', path: '', value: { count } }] });
const modelMessage = (content: string) => ({ role: 'model' as const, content: [{ text: content }] });

function chatOver(...scripts: Script[]) {
  const transport = scriptedTransport(...scripts);
  return { transport, agent: createAgentApi<Counter>(transport) };
}

async function textsOf(stream: AsyncIterable<AgentChunk>): Promise<string[]> {
  return (await collect(stream)).map(({ text }) => text);
}

describe('a turn', () => {
  it('settles its response even if the stream is not read', async () => {
    const { agent } = chatOver({
      chunks: [rebase(1), text('a')],
      output: { snapshotId: 's1', message: modelMessage('a') },
    });
    const chat = agent.chat();
    const response = await chat.sendStream('go').response;
    expect(response.text).toBe('a');
    expect(chat.state).toEqual({ count: 1 });
  });

  it('whose signal is already aborted ends as aborted, and the chat continues', async () => {
    const { agent, transport } = chatOver({ output: { message: modelMessage('b') } });
    const chat = agent.chat();
    const { finishReason } = await chat.send('a', { abortSignal: AbortSignal.abort() });
    expect(finishReason).toBe('aborted');
    expect(await chat.abort()).toBeUndefined();
    expect((await chat.send('b')).text).toBe('b');
    expect(transport.calls).toHaveLength(1);
  });

  it.each([
    [
      'an input that cannot be read',
      {
        get message(): never {
          throw new Error('odd');
        },
      },
      {},
    ],
    ['a signal that is none', 'a', { abortSignal: {} as AbortSignal }],
    [
      'options that cannot be read',
      'a',
      {
        get model(): never {
          throw new Error('odd');
        },
      },
    ],
  ])('with %s is refused, and the chat goes on', async (_, input, options) => {
    const { agent } = chatOver({ output: { message: modelMessage('b') } });
    const chat = agent.chat();
    await expect(chat.send(input, options)).rejects.toThrow();
    expect((await chat.send('b')).text).toBe('b');
  });

  it('with an invalid output is refused, and the chat continues', async () => {
    const odd = { artifacts: [null] } as unknown as AgentOutput;
    const { agent } = chatOver({ output: odd }, { output: { message: modelMessage('b') } });
    const chat = agent.chat();
    await expect(chat.send('a')).rejects.toThrow();
    expect((await chat.send('b')).text).toBe('b');
  });

  it('with a transport that throws at once is a failed turn, and the chat continues', async () => {
    const { agent, transport } = chatOver({ output: { message: modelMessage('b') } });
    const fails = vi.spyOn(transport, 'runTurn').mockImplementationOnce(() => {
      throw new Error('no transport');
    });
    const chat = agent.chat();
    await expect(chat.send('a')).rejects.toThrow('no transport');
    expect((await chat.send('b')).text).toBe('b');
    expect(fails).toHaveBeenCalledTimes(2);
  });

  it.each([[{ modelChunk: { content: null } }], [{ modelChunk: { content: [null] } }], [null]])(
    'with an invalid chunk, %j, fails at its end; the chunks before were streamed',
    async (bad) => {
      const end = gate();
      const chunks = [text('a'), bad as unknown as AgentStreamChunk, text('b')];
      const { agent } = chatOver({ chunks, until: end.opened, output: { message: modelMessage('ab') } });
      const chat = agent.chat();
      const turn = chat.sendStream('go');
      const seen: string[] = [];
      const reading = (async () => {
        for await (const chunk of turn.stream) seen.push(chunk.text);
      })();
      end.open();
      const error = await refusal(turn.response);
      expect(error).toMatchObject({
        status: 'UNKNOWN',
        message: expect.stringContaining('is invalid'),
      });
      await expect(reading).rejects.toBe(error);
      expect(seen).toEqual(['a']);
      expect(chat.messages).toEqual([]);
    },
  );

  it('can be read late, and more than once', async () => {
    const { agent } = chatOver({ chunks: [text('a'), text('b')], output: { message: modelMessage('ab') } });
    const turn = agent.chat().sendStream('go');
    await turn.response;
    expect(await textsOf(turn.stream)).toEqual(['a', 'b']);
    expect(await textsOf(turn.stream)).toEqual(['a', 'b']);
  });

  it('yields each chunk before the turn ends', async () => {
    const end = gate();
    const { agent } = chatOver({ chunks: [text('a')], until: end.opened });
    const turn = agent.chat().sendStream('go');
    const reader = turn.stream[Symbol.asyncIterator]();
    expect((await reader.next()).value.text).toBe('a');
    const rest = reader.next();
    end.open();
    expect((await rest).done).toBe(true);
  });

  it('throws the error of a failed turn to the readers of its stream, after its chunks', async () => {
    const { agent } = chatOver({
      chunks: [text('a')],
      output: { finishReason: 'failed', error: { status: 'UNAVAILABLE', message: 'No model.' } },
    });
    const turn = agent.chat().sendStream('go');
    const seen: string[] = [];
    const reading = (async () => {
      for await (const chunk of turn.stream) {
        seen.push(chunk.text);
      }
    })();
    expect((await refusal(reading)).status).toBe('UNAVAILABLE');
    expect(seen).toEqual(['a']);
  });

  it('has the values of its end in its response, whatever happens later', async () => {
    const { agent } = chatOver(
      { chunks: [rebase(1)], output: { snapshotId: 's1', message: modelMessage('one') } },
      { chunks: [rebase(2)], output: { snapshotId: 's2', message: modelMessage('two') } },
    );
    const chat = agent.chat();
    const first = await chat.send('go');
    await chat.send('on');
    expect(first.state).toEqual({ count: 1 });
    expect(first.messages).toHaveLength(2);
    expect(chat.messages).toHaveLength(4);
  });

  it('is refused while another is running, and does not affect it', async () => {
    const end = gate();
    const { agent, transport } = chatOver(
      { until: end.opened, output: { snapshotId: 's1', message: modelMessage('one') } },
      { output: { snapshotId: 's2', message: modelMessage('two') } },
    );
    const chat = agent.chat();
    const first = chat.send('one');
    const second = chat.sendStream('two');
    expect((await refusal(second.response)).status).toBe('FAILED_PRECONDITION');
    expect((await refusal(collect(second.stream))).message).toMatch(/running a turn/);
    end.open();
    expect((await first).text).toBe('one');
    expect((await chat.send('two')).text).toBe('two');
    expect(transport.calls).toHaveLength(2);
  });
});

describe('a chat continues', () => {
  const inits = async (
    open: (agent: AgentAPI<Counter>) => ReturnType<AgentAPI<Counter>['chat']>,
    ...scripts: Script[]
  ) => {
    const { agent, transport } = chatOver(...scripts);
    const chat = open(agent);
    for (let turn = 0; turn < scripts.length; turn++) {
      await chat.send('go').catch(() => {});
    }
    return transport.calls.map(({ init }) => init);
  };

  it('from the snapshot of the turn before', async () => {
    const done: Script[] = [
      { output: { snapshotId: 's1', sessionId: 'S' } },
      { output: { snapshotId: 's2', sessionId: 'S' } },
      {},
    ];
    expect(await inits((agent) => agent.chat(), ...done)).toEqual([{}, { snapshotId: 's1' }, { snapshotId: 's2' }]);
  });

  it('from the session only until it knows a snapshot', async () => {
    const done: Script[] = [{ output: { snapshotId: 's1', sessionId: 'S' } }, {}];
    const sent = await inits((agent) => agent.chat({ sessionId: 'S' }), ...done);
    expect(sent).toEqual([{ sessionId: 'S' }, { snapshotId: 's1' }]);
  });

  it('with the session as guard of the snapshot, when it was opened with both', async () => {
    const opening = { snapshotId: 's0', sessionId: 'S' };
    const sent = await inits((agent) => agent.chat(opening), { output: { snapshotId: 's1' } }, {});
    expect(sent).toEqual([opening, { snapshotId: 's1' }]);
  });

  it('with the state that an agent without a store returned', async () => {
    const state = { sessionId: 'S', messages: [modelMessage('one')], custom: { count: 1 } };
    expect(await inits((agent) => agent.chat(), { output: { sessionId: 'S', state } }, {})).toEqual([{}, { state }]);
  });

  it('in its session after a failed first turn, and never with a state built from patches', async () => {
    const failed = { finishReason: 'failed', sessionId: 'S', error: { message: 'No.' } } as const;
    const sent = await inits((agent) => agent.chat(), { chunks: [rebase(1)], output: failed }, {});
    expect(sent).toEqual([{}, { sessionId: 'S' }]);
  });

  it('as it began after a first turn without an output', async () => {
    const lost = { chunks: [rebase(1)], throws: new TypeError('terminated') };
    expect(await inits((agent) => agent.chat({ sessionId: 'S' }), lost, {})).toEqual([
      { sessionId: 'S' },
      { sessionId: 'S' },
    ]);
    expect(await inits((agent) => agent.chat(), lost, {})).toEqual([{}, {}]);
  });
});

describe('artifacts', () => {
  it('replace those of their names; one without a name, or with an empty one, is always another', async () => {
    const parts = [{ text: 'x' }];
    const artifacts = [
      { name: 'a', parts: [] },
      { name: 'a', parts },
      { name: '', parts },
      { name: '', parts },
      { parts },
    ];
    const { agent } = chatOver({ output: { message: modelMessage('done'), artifacts } });
    const chat = agent.chat();
    await chat.send('go');
    expect(chat.artifacts).toEqual(artifacts.slice(1));
    const session = new Session();
    session.addArtifacts(artifacts);
    expect(chat.artifacts).toEqual(session.getArtifacts());
  });

  it('without a name are not repeated by the next outputs, which name all of the session', async () => {
    const [chart, note, map] = ['chart', 'note', 'map'].map((text) => ({ parts: [{ text }] }));
    const outputs = [
      [chart!],
      [chart!, { name: 'a', parts: [] }, note!],
      [chart!, { name: 'a', parts: note!.parts }, note!, { name: '', parts: [] }, chart!, map!],
    ];
    outputs.push(outputs[2]!);
    const { agent } = chatOver(
      ...outputs.map((artifacts) => ({ output: { message: modelMessage('done'), artifacts } })),
    );
    const chat = agent.chat();
    for (const artifacts of outputs) {
      await chat.send('go');
      expect(chat.artifacts).toEqual(artifacts);
    }
  });
});

describe('a turn that fails', () => {
  const good: Script = {
    chunks: [rebase(1)],
    output: { snapshotId: 's1', sessionId: 'S', message: modelMessage('one') },
  };

  it('restores messages, artifacts and state from before it', async () => {
    const { agent } = chatOver(good, {
      chunks: [rebase(7)],
      // The runtime repeats the last good message in the output of a failed turn.
      output: {
        finishReason: 'failed',
        snapshotId: 's1',
        message: modelMessage('one'),
        error: { status: 'INTERNAL', message: 'Oh.' },
      },
    });
    const chat = agent.chat();
    await chat.send('go');
    const error = await refusal(chat.send('on'));
    expect(error).toMatchObject({ status: 'INTERNAL', message: 'Oh.', snapshotId: 's1', state: { count: 1 } });
    expect(error.response.finishReason).toBe('failed');
    expect(chat.state).toEqual({ count: 1 });
    expect(chat.messages.map(({ content }) => content[0]?.text)).toEqual(['go', 'one']);
  });

  it('uses the last good state that an agent without a store returns', async () => {
    const state = { custom: { count: 1 }, messages: [modelMessage('one')] };
    const { agent } = chatOver({
      chunks: [rebase(7)],
      output: { finishReason: 'failed', state, error: { status: 'ABORTED', message: 'ABORTED: Too late.' } },
    });
    const chat = agent.chat({ state });
    const error = await refusal(chat.send('go'));
    expect(error).toMatchObject({ status: 'ABORTED', message: 'Too late.', state: { count: 1 } });
    expect(chat.messages).toEqual(state.messages);
  });

  it('reports the error of the transport: a GenkitError by its status, anything else as INTERNAL', async () => {
    const detail = { limit: 3 };
    const thrown = new GenkitError({ status: 'RESOURCE_EXHAUSTED', message: 'Enough.', detail });
    const { agent } = chatOver(
      { throws: thrown },
      { throws: new Error('x is not a function') },
      { throws: 'a string' },
    );
    const chat = agent.chat();
    const [first, second, third] = [
      await refusal(chat.send('1')),
      await refusal(chat.send('2')),
      await refusal(chat.send('3')),
    ];
    expect(first).toMatchObject({ status: 'RESOURCE_EXHAUSTED', message: 'Enough.', details: detail, cause: thrown });
    expect(second).toMatchObject({ status: 'INTERNAL', message: 'x is not a function' });
    expect(third).toMatchObject({ status: 'INTERNAL' });
    expect(chat.messages).toEqual([]);
  });

  it('yields all chunks that arrived before it, and then reverts their changes', async () => {
    const counts = Array.from({ length: 50 }, (_, n) => n);
    const { agent } = chatOver(good, { chunks: counts.map(rebase), throws: new TypeError('terminated') });
    const chat = agent.chat();
    await chat.send('go');
    const turn = chat.sendStream('on');
    await refusal(turn.response);
    expect(chat.state).toEqual({ count: 1 });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const { custom } of turn.stream) {
        seen.push((custom as Counter).count);
      }
    })();
    await refusal(reading);
    expect(seen).toEqual(counts);
    expect(chat.state).toEqual({ count: 1 });
  });
});

describe('a change of the custom state', () => {
  it('that does not apply is DATA_LOSS, keeps the state before it, and the chat continues', async () => {
    const misfit: AgentStreamChunk = { customPatch: [{ op: 'replace', path: '/none/such', value: 1 }] };
    const { agent, transport } = chatOver(
      { chunks: [rebase(1), misfit, rebase(9)], output: { snapshotId: 's1', message: modelMessage('done') } },
      { chunks: [rebase(10)], output: { snapshotId: 's2' } },
    );
    const chat = agent.chat();
    const error = await refusal(chat.send('go'));
    expect(error).toMatchObject({ status: 'DATA_LOSS', state: { count: 1 }, snapshotId: 's1' });
    expect(error.response.text).toBe('done');
    expect(chat.state).toEqual({ count: 1 });
    expect((await chat.send('on')).state).toEqual({ count: 10 });
    expect(transport.calls[1]?.init).toEqual({ snapshotId: 's1' });
  });

  it('that removes it arrives, although JSON has no undefined', async () => {
    const emptied = JSON.parse('{"customPatch":[{"op":"replace","path":""}]}') as AgentStreamChunk;
    const { agent } = chatOver({ chunks: [rebase(1), emptied], output: { snapshotId: 's1' } });
    const chat = agent.chat();
    await chat.send('go');
    expect(chat.state).toBeUndefined();
  });

  it('creates a new object each time', async () => {
    const add: AgentStreamChunk = { customPatch: [{ op: 'replace', path: '/count', value: 2 }] };
    const { agent } = chatOver({ chunks: [rebase(1), add], output: { snapshotId: 's1' } });
    const states: unknown[] = [];
    for await (const { custom } of agent.chat().sendStream('go').stream) {
      states.push(custom);
    }
    expect(states).toEqual([{ count: 1 }, { count: 2 }]);
  });
});

describe('aborting', () => {
  it('before the turn sends nothing', async () => {
    const { agent, transport } = chatOver();
    const chat = agent.chat();
    const response = await chat.send('go', { abortSignal: AbortSignal.abort() });
    expect(response.finishReason).toBe('aborted');
    expect(chat.messages).toEqual([]);
    expect(transport.calls).toEqual([]);
  });

  it('a turn ends it as aborted and removes its message', async () => {
    const { agent, transport } = chatOver({ chunks: [rebase(1), text('a')], until: new Promise(() => {}) }, {});
    const chat = agent.chat();
    const turn = chat.sendStream('go');
    await turn.stream[Symbol.asyncIterator]().next();
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    expect(await textsOf(turn.stream)).toEqual(['', 'a']);
    expect(transport.calls[0]?.abortSignal.aborted).toBe(true);
    expect(chat.messages).toEqual([]);
    expect(chat.state).toBeUndefined();
    expect((await chat.send('again')).finishReason).toBe('stop');
  });

  it('by a time limit is an error, DEADLINE_EXCEEDED', async () => {
    const { agent } = chatOver({ until: new Promise(() => {}) });
    const error = await refusal(agent.chat().send('go', { abortSignal: AbortSignal.timeout(1) }));
    expect(error.status).toBe('DEADLINE_EXCEEDED');
  });

  it('leaves no listener on the caller’s signal', async () => {
    const controller = new AbortController();
    const { agent } = chatOver({}, {}, { throws: new Error('no') });
    const chat = agent.chat();
    for (let turn = 0; turn < 3; turn++) {
      await chat.send('go', { abortSignal: controller.signal }).catch(() => {});
    }
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});

describe('an interrupt', () => {
  const request = {
    toolRequest: { name: 'pay', ref: 'r1', input: { sum: 3 } },
    metadata: { interrupt: { why: 'costly' } },
  };

  it('builds answers and approvals, with metadata or without', async () => {
    const message = { role: 'model' as const, content: [request, { toolRequest: { name: 'done', input: {} } }] };
    const { agent } = chatOver({ output: { finishReason: 'interrupted', message } });
    const { interrupts, toolRequests } = await agent.chat().send('go');
    expect(toolRequests).toHaveLength(2);
    expect(interrupts).toHaveLength(1);
    const [interrupt] = interrupts;
    expect(interrupt?.respond('no')).toEqual({
      toolResponse: { name: 'pay', ref: 'r1', output: 'no' },
      metadata: { interruptResponse: true },
    });
    expect(interrupt?.restart()).toEqual({ toolRequest: request.toolRequest, metadata: { resumed: true } });
    expect(interrupt?.restart({ by: 'Ada' }).metadata).toEqual({ resumed: { by: 'Ada' } });
  });
});

describe('loading', () => {
  it('a chat that does not exist is NOT_FOUND', async () => {
    const { agent } = chatOver();
    expect(await agent.getSnapshot('nowhere')).toBeUndefined();
    expect(await refusal(agent.loadChat({ sessionId: 'nowhere' }))).toMatchObject({ status: 'NOT_FOUND' });
  });

  it('continues from the snapshot, without sending its state', async () => {
    const { agent, transport } = chatOver({});
    const snapshot: SessionSnapshot<Counter> = {
      snapshotId: 's9',
      sessionId: 'S',
      createdAt: '2026-01-01T00:00:00.000Z',
      status: 'completed',
      state: { messages: [modelMessage('hi')], custom: { count: 9 } },
    };
    transport.snapshots = [snapshot];
    const chat = await agent.loadChat({ sessionId: 'S' });
    expect(chat).toMatchObject({ sessionId: 'S', snapshotId: 's9', state: { count: 9 } });
    await chat.send('go');
    expect(transport.calls[0]?.init).toEqual({ snapshotId: 's9' });
  });
});

describe('an AgentError', () => {
  it('is recognized across two copies of the package', async () => {
    const copy: string = '../../../src/client/errors.ts?copy';
    const other = (await import(copy)) as { AgentError: typeof AgentError };
    const error = new other.AgentError({ status: 'ABORTED', message: 'Elsewhere.' });
    expect(error instanceof AgentError).toBe(false);
    expect(AgentError.isInstance(error)).toBe(true);
    expect(AgentError.isInstance(new Error('no'))).toBe(false);
    expect(AgentError.isInstance(undefined)).toBe(false);
  });

  it('has an empty response without a turn', () => {
    const error = new AgentError({ status: 'UNAVAILABLE', message: 'No server.' });
    expect(error.response).toMatchObject({
      finishReason: 'failed',
      finishMessage: 'No server.',
      text: '',
      messages: [],
    });
    expect(() => error.response.assertValid()).toThrow('No server.');
  });
});

describe('assertValid', () => {
  it('refuses a blocked turn and one without a reply', async () => {
    const { agent } = chatOver(
      { output: { finishReason: 'blocked', message: modelMessage('x') } },
      { output: {} },
      {
        output: { message: modelMessage('fine') },
      },
    );
    const chat = agent.chat();
    const [blocked, empty, fine] = [await chat.send('1'), await chat.send('2'), await chat.send('3')];
    expect(() => blocked.assertValid()).toThrow(/blocked/);
    expect(() => empty.assertValid()).toThrow(/no reply/);
    expect(() => fine.assertValid()).not.toThrow();
  });
});
