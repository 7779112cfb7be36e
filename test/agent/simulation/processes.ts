import { z, type ActionContext } from 'genkit';
import { genkit } from 'genkit/beta';
import { defineCustomAgent, type Agent } from 'genkitx-agents';
import { user, model } from '../support/helpers.ts';
import { Connection, type Backend } from './backend.ts';
import { pause } from './clock.ts';
import type { PlannedCall, PlannedTurn, Scenario } from './scenario.ts';

/** The custom state: the turns that it has seen. */
interface Steps {
  steps: string[];
}

/** The result of a call of the agent, as its caller knows it. */
export interface CallRecord extends PlannedCall {
  readonly number: number;
  readonly connection: Connection;
  /** The turns whose end the caller received, in order. */
  readonly ends: { snapshotId?: string; finishReason?: string }[];
  /** Missing when the process died first. */
  output?: { finishReason?: string; snapshotId?: string; error?: { status?: string; message?: string } };
}

/** One process: its own Genkit instance, agent, and connection to the medium. */
export class SimulatedProcess {
  readonly ai = genkit({});
  readonly agent: Agent<Steps>;
  readonly connection: Connection;
  readonly died: Promise<void>;
  #die!: () => void;

  /** @param onRun Called for each turn that the agent's function begins. */
  constructor(
    backend: Backend,
    { agent }: Scenario,
    turns: ReadonlyMap<string, PlannedTurn>,
    onRun: (text: string) => void,
  ) {
    this.died = new Promise((resolve) => (this.#die = resolve));
    this.connection = new Connection(backend);
    this.agent = defineCustomAgent<Steps>(
      this.ai,
      {
        name: 'worker',
        store: this.connection.store,
        storeTimeoutMs: 2000,
        appName: 'simulation',
        scopes: { user: z.object({ turns: z.number() }) },
        background: { heartbeatIntervalMs: 1000, leaseMs: 5000, keepContext: (context) => context },
        ...agent,
      },
      async (sess) => {
        await sess.run(async (input) => {
          const text = input.message!.content[0]!.text!;
          onRun(text);
          const { ms, isFailing } = turns.get(text)!;
          sess.updateCustom((custom) => ({ steps: [...(custom?.steps ?? []), text] }));
          sess.state.update('user:turns', (count) => ((count as number | undefined) ?? 0) + 1);
          await pause(ms);
          if (isFailing) throw new Error('no');
          sess.addMessages([model(`re: ${text}`)]);
          return { finishReason: 'stop' };
        });
        return { finishReason: 'stop' };
      },
    );
  }

  /** Ends it at once, as kill -9 does. */
  kill(): void {
    this.connection.cut();
    this.#die();
  }

  /** Calls the agent, until it answers or the process dies. */
  async call(planned: PlannedCall, number: number): Promise<CallRecord> {
    const { sessionId, turns, isDetached, abortAfterMs } = planned;
    const record: CallRecord = { ...planned, number, connection: this.connection, ends: [] };
    const caller = new AbortController();
    const stream = this.agent.streamBidi({ sessionId }, { context: contextOf(number), abortSignal: caller.signal });
    for (const [i, { text }] of turns.entries()) {
      stream.send({ message: user(text), ...(isDetached && i === turns.length - 1 && { detach: true }) });
    }
    stream.close();
    if (abortAfterMs !== undefined) void pause(abortAfterMs).then(() => caller.abort());
    const { connection } = this;
    const read = async () => {
      for await (const { turnEnd } of stream.stream) if (turnEnd && !connection.isCut) record.ends.push(turnEnd);
      const output = await stream.output;
      if (!connection.isCut) record.output = output;
    };
    await Promise.race([read(), this.died]);
    return record;
  }
}

/** The context of a call: its user and its number. */
export function contextOf(call: number): ActionContext {
  return { auth: { uid: 'ada' }, call };
}
