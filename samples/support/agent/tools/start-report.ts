import { z } from 'genkit';
import type { AgentsGenkit } from 'genkitx-agents';
import type { ReportAgent } from '../report-agent.ts';

const OutputSchema = z.object({ reportId: z.string().describe('Where the report is followed and stopped') });

export type StartReportOutput = z.infer<typeof OutputSchema>;

/** Starts another agent in the background. The conversation continues while the report is written. */
export function defineStartReport(ai: AgentsGenkit, reporter: ReportAgent) {
  return ai.defineTool(
    {
      name: 'startReport',
      description:
        'Starts to write the monthly report, in the background. It takes a while; the page shows how far it is.',
      inputSchema: z.object({}),
      outputSchema: OutputSchema,
    },
    async (_input, { context }) => {
      const { snapshotId } = await reporter.chat({}, { context }).detach('Write the monthly report.');
      return { reportId: snapshotId };
    },
  );
}
