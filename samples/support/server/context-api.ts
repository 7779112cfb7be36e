// Express 5 passes errors of an async handler to the error handler.
// oxlint-disable oxc/no-async-endpoint-handlers
import { Router } from 'express';
import { UserFacingError } from 'genkit';
import type { RecordStore } from 'genkitx-agents';
import { readSummary } from 'genkitx-agents/context';
import type { SupportAgent } from '../agent/support-agent.ts';
import type { SeenContext } from './api-types.ts';
import { contextOf, parameter, wrong } from './callers.ts';

/** What the model saw in a turn: the counts that are stored with its snapshot, and the text of the summary that they name. */
export function contextApi(support: SupportAgent, records: RecordStore): Router {
  const router = Router();

  router.get('/context', async (request, response) => {
    const snapshotId = parameter(request, 'snapshotId');
    if (snapshotId === undefined) throw wrong('snapshotId is missing: name the turn with ?snapshotId=...');
    const context = contextOf(response);
    // Read with the agent, because the store does not check the owner: for other users the snapshot does not exist.
    const snapshot = await support.getSnapshot({ snapshotId }, { context, metadataOnly: true });
    if (!snapshot) throw new UserFacingError('NOT_FOUND', 'There is no such turn.');
    const { sessionId, contextReport: report } = snapshot;
    const sent = report?.summary;
    const summary =
      sent && sessionId !== undefined
        ? await readSummary(records, { sessionId, sha256: sent.sha256, context })
        : undefined;
    response.json({
      ...(report && { report }),
      ...(summary && { summary: { text: summary.text, model: summary.model, createdAt: summary.createdAt } }),
    } satisfies SeenContext);
  });

  return router;
}
