/** A stub with the interface of an agent: the test provides its run. */
import { AgentInitSchema, AgentInputSchema } from 'genkit/beta';
import { z } from 'genkit';
import type { ServedAction, ServedAgent } from 'genkitx-agents/server';

type Run = (input: unknown, options: Parameters<ServedAction['run']>[1]) => unknown;

export interface StubAgent extends ServedAgent {
  /** The arguments of every run, including those of the snapshot and abort actions. */
  readonly runs: { input: unknown; options: Parameters<ServedAction['run']>[1] }[];
}

export function stubAgent(name: string, run: Run, companions: { getSnapshot?: Run; abort?: Run } = {}): StubAgent {
  const runs: StubAgent['runs'] = [];
  const action = (doIt: Run, schemas: Partial<ServedAction['__action']>): ServedAction => ({
    __action: { name, ...schemas },
    run: async (input, options) => {
      runs.push({ input, options });
      return { result: await doIt(input, options), telemetry: { traceId: 'trace', spanId: 'span' } };
    },
  });
  const ids = z.object({ snapshotId: z.string().optional(), sessionId: z.string().optional() });
  return {
    ...action(run, { inputSchema: AgentInputSchema, initSchema: AgentInitSchema }),
    getSnapshotDataAction: action(companions.getSnapshot ?? (() => undefined), { inputSchema: ids }),
    abortAgentAction: action(companions.abort ?? (() => undefined), {
      inputSchema: z.object({ snapshotId: z.string() }),
    }),
    runs,
  };
}
