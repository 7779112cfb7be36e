/** One suite over every way to reach an agent: the conversation is the same for each combination of client, server and agent. */
import type { AgentInput } from 'genkit/beta';
import type { AgentChunk } from 'genkit/beta/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeAgents, makers, type Counter, type TestAgents } from '../support/agents.ts';
import { catchErrorLog } from '../support/log.ts';
import { ways, type Reached } from '../support/ways.ts';
import { collect } from '../../support/collect.ts';

catchErrorLog();

const UUID = /^[\da-f-]{36}$/;

async function errorOf(promise: Promise<unknown>): Promise<Error & { status?: string; state?: unknown }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('It should have been refused.');
}

const textOf = (chunks: AgentChunk[]) => chunks.map(({ text }) => text).join('');

describe.each(makers)('$name', (maker) => {
  // Genkit's client over Genkit's server to Genkit's agent would be a test of Genkit.
  const ofInterest = ways.filter((way) => `${maker.name} ${way.name}`.includes('our '));

  describe.each(ofInterest)('$name', (way) => {
    let made: TestAgents;
    let reached: Reached;

    beforeEach(async () => {
      made = makeAgents(maker);
      reached = await way.reach(made);
    });
    afterEach(() => reached.stop());

    it('send returns the reply, and the next turn continues from it', async () => {
      const chat = reached.agent('chatty').chat();
      const first = await chat.send('hello');
      expect(first.text).toBe('#1 You said: hello');
      expect(first.finishReason).toBe('stop');
      expect(first.snapshotId).toMatch(UUID);
      expect(chat.snapshotId).toBe(first.snapshotId);
      expect(chat.sessionId).toMatch(UUID);
      const second = await chat.send('again');
      expect(second.text).toBe('#2 You said: again');
      expect(second.snapshotId).not.toBe(first.snapshotId);
      expect(second.sessionId).toBe(first.sessionId);
      expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'model', 'user', 'model']);
    });

    it('sendStream yields the text as it arrives, then the response', async () => {
      const turn = reached.agent('chatty').chat().sendStream('stream this');
      const chunks = await collect(turn.stream);
      expect(textOf(chunks)).toBe('#1 You said: stream this');
      expect(chunks.filter(({ text }) => text !== '').length).toBeGreaterThan(3);
      expect(chunks.at(-1)?.accumulatedText).toBe('#1 You said: stream this');
      expect((await turn.response).text).toBe('#1 You said: stream this');
    });

    it('texts of every plane arrive as they were sent', async () => {
      const text = 'Zoë 日本語 🧑‍🚀🇨🇭 "quoted" \\ \u2028 \u0000 end';
      const turn = reached.agent('chatty').chat().sendStream(text);
      expect(textOf(await collect(turn.stream))).toBe(`#1 You said: ${text}`);
    });

    it('a session is resumed by its id, a snapshot by its own, and that branches', async () => {
      const agent = reached.agent('chatty');
      const chat = agent.chat();
      const first = await chat.send('one');
      await chat.send('two');
      const resumed = agent.chat({ sessionId: first.sessionId });
      expect((await resumed.send('three')).text).toBe('#3 You said: three');
      expect((await resumed.send('four')).text).toBe('#4 You said: four');
      const branch = agent.chat({ snapshotId: first.snapshotId });
      expect((await branch.send('other')).text).toBe('#2 You said: other');
    });

    it('loadChat brings back messages, state and artifacts', async () => {
      const agent = reached.agent<Counter>('counter');
      const { sessionId, snapshotId } = await agent.chat().send('one');
      const [bySnapshot, bySession] = await Promise.all([
        agent.loadChat({ snapshotId: snapshotId! }),
        agent.loadChat({ sessionId: sessionId! }),
      ]);
      for (const chat of [bySnapshot, bySession]) {
        expect(chat.state).toEqual({ count: 1, label: 'one' });
        expect(chat.messages).toHaveLength(2);
        expect(chat.artifacts.map(({ name }) => name)).toEqual(['note']);
        expect(chat.sessionId).toBe(sessionId);
        expect((await chat.send('two')).state).toEqual({ count: 2, label: 'two' });
      }
    });

    it('getSnapshot returns the snapshot, by either id', async () => {
      const agent = reached.agent<Counter>('counter');
      const { sessionId, snapshotId } = await agent.chat().send('one');
      const byId = await agent.getSnapshot(snapshotId!);
      expect(byId).toMatchObject({ snapshotId, sessionId, status: 'completed' });
      expect(byId?.state?.custom).toEqual({ count: 1, label: 'one' });
      expect(await agent.getSnapshot({ sessionId: sessionId! })).toEqual(byId);
    });

    it('an agent without a store keeps its state with the client', async () => {
      const chat = reached.agent<Counter>('clientCounter').chat();
      await chat.send('one');
      const { state, snapshotId } = await chat.send('two');
      expect(state).toEqual({ count: 2, label: 'two' });
      expect(snapshotId).toBeUndefined();
      expect(chat.messages).toHaveLength(4);
      const fresh = reached.agent<Counter>('clientCounter').chat({ state: { custom: { count: 40 } } });
      expect((await fresh.send('on')).state).toEqual({ count: 41, label: 'on' });
    });

    it('the custom state is followed while it changes', async () => {
      const chat = reached.agent<Counter>('counter').chat();
      const turn = chat.sendStream('one');
      const states = (await collect(turn.stream)).map(({ custom }) => custom).filter(Boolean);
      expect(states).toEqual([{ count: 1 }, { count: 1, label: 'one' }]);
      expect((await turn.response).state).toEqual({ count: 1, label: 'one' });
      expect(chat.state).toEqual({ count: 1, label: 'one' });
    });

    it('artifacts are streamed and kept, one of a name', async () => {
      const chat = reached.agent('counter').chat();
      const turn = chat.sendStream('one');
      const streamed = (await collect(turn.stream)).map(({ artifact }) => artifact).filter(Boolean);
      expect(streamed).toEqual([{ name: 'note', parts: [{ text: 'one' }] }]);
      expect((await turn.response).artifacts).toEqual(streamed);
      await chat.send('two');
      expect(chat.artifacts).toEqual([{ name: 'note', parts: [{ text: 'two' }] }]);
    });

    it('an interrupt is answered by respond', async () => {
      const chat = reached.agent('careful').chat();
      const asked = await chat.send('ask');
      expect(asked.finishReason).toBe('interrupted');
      const [interrupt] = asked.interrupts;
      expect(interrupt).toMatchObject({ name: 'ask', ref: 'r1', input: { question: 'Sure?' } });
      const answered = await chat.resume({ respond: [interrupt!.respond({ answer: 'yes' })] });
      expect(answered.text).toBe('The tool said: {"answer":"yes"}');
    });

    it('an interrupted tool is run again by restart', async () => {
      const chat = reached.agent('careful').chat();
      const [interrupt] = (await chat.send('confirm')).interrupts;
      const part = interrupt!.restart();
      // Genkit's builder omits the metadata that marks the approval.
      const restart = way.ours ? part : { ...part, metadata: { resumed: true } };
      const resume: AgentInput['resume'] = { restart: [restart] };
      expect((await chat.resume(resume)).text).toBe('The tool said: "delete approved by true"');
    });

    it('a turn that fails throws, and the conversation continues from the last good turn', async () => {
      const chat = reached.agent<Counter>('counter').chat();
      const { snapshotId } = await chat.send('one');
      const error = await errorOf(chat.send('crash boom'));
      expect(error.name).toBe('AgentError');
      expect(chat.snapshotId).toBe(snapshotId);
      expect((await chat.send('two')).state).toEqual({ count: 2, label: 'two' });
    });

    it('a snapshot that cannot be resumed is refused with its status', async () => {
      const missing = await errorOf(reached.agent('chatty').chat({ snapshotId: 'nowhere' }).send('hello'));
      expect(missing.name).toBe('AgentError');
      const misused = await errorOf(reached.agent('clientCounter').chat({ sessionId: 'any' }).send('hello'));
      expect(misused.name).toBe('AgentError');
      if (way.tellsStatus) {
        expect(missing.status).toBe('NOT_FOUND');
        expect(misused.status).toBe('FAILED_PRECONDITION');
      }
    });

    if (way.ours) {
      it('getSnapshot returns undefined for a missing snapshot; Genkit’s server fails', async () => {
        for (const lookup of [{ snapshotId: 'nowhere' }, { sessionId: 'nowhere' }]) {
          const read = reached.agent('chatty').getSnapshot(lookup);
          if (way.tellsStatus) expect(await read).toBeUndefined();
          else expect(await errorOf(read)).toMatchObject({ name: 'AgentError', status: 'INTERNAL' });
        }
      });
    }

    it('abort returns the status, and undefined for a missing snapshot', async () => {
      const agent = reached.agent('chatty');
      const { snapshotId } = await agent.chat().send('hello');
      expect(await agent.abort(snapshotId!)).toBe('completed');
      expect(await agent.abort('nowhere')).toBeUndefined();
    });

    // In process only an agent that stops can end its caller's waiting.
    if (maker.stops || way.overHttp) {
      it('a turn that its caller aborts ends as aborted', async () => {
        const turn = reached.agent('slow').chat().sendStream('go');
        const reading = collect(turn.stream);
        await made.controls.slowStarted.opened;
        turn.abort();
        expect((await turn.response).finishReason).toBe('aborted');
        await reading;
        if (maker.stops && way.stopsRuns) {
          await made.controls.slowStopped.opened;
        }
        made.controls.slowMayEnd.open();
      });
    }

    if (maker.detaches) {
      it('a turn in the background continues until it is done', async () => {
        const task = await reached.agent('slow').chat().detach('go');
        await made.controls.slowStarted.opened;
        const seen: (string | undefined)[] = [];
        for await (const snapshot of task.poll({ intervalMs: 5 })) {
          seen.push(snapshot.status);
          made.controls.slowMayEnd.open();
        }
        expect(seen[0]).toBe('pending');
        expect(seen.at(-1)).toBe('completed');
        expect((await task.wait()).state?.messages?.at(-1)?.content).toEqual([{ text: 'ended' }]);
        expect(await task.abort()).toBe('completed');
      });

      it('a turn in the background is stopped by abort, which returns the earlier status', async () => {
        const agent = reached.agent('slow');
        const task = await agent.chat().detach('go');
        expect(await agent.abort(task.snapshotId)).toBe('pending');
        expect((await task.wait({ intervalMs: 5 })).status).toBe('aborted');
        made.controls.slowMayEnd.open();
      });
    } else if (way.ours) {
      // Not with Genkit's client: it leaves the refusal of a detach unhandled, which would end the process.
      it('a detached turn is refused by agents without a background', async () => {
        const error = await errorOf(reached.agent('slow').chat().detach('go'));
        expect(error.name).toBe('AgentError');
        if (way.tellsStatus) {
          expect(error.status).toBe('UNIMPLEMENTED');
        }
      });
    }

    it('concurrent chats do not affect each other', async () => {
      const agent = reached.agent('chatty');
      const replies = await Promise.all(
        Array.from({ length: 3 }, async (_, n) => {
          const chat = agent.chat();
          await chat.send(`first ${n}`);
          return (await chat.send(`second ${n}`)).text;
        }),
      );
      expect(replies).toEqual(Array.from({ length: 3 }, (_, n) => `#2 You said: second ${n}`));
    });
  });
});
