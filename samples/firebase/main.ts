import { onRequest } from 'firebase-functions/https';
import { onSchedule } from 'firebase-functions/scheduler';
import { startServing, type Serving } from './serving.ts';

let serving: Promise<Serving> | undefined;

/**
 * With the first request, not with the module: it is loaded for deploying too, by ways that know no top-level `await`. And by then the
 * framework has said what is to happen on SIGTERM, which is not what we want.
 */
function serve(): Promise<Serving> {
  serving ??= startServing();
  return serving;
}

/** The chat page at `<url of the function>/`, the agents at `<url of the function>/api`. */
export const agents = onRequest({ cors: true, invoker: 'public', timeoutSeconds: 300 }, async (request, response) => {
  (await serve()).answer(request, response);
});

/**
 * Takes over the background runs whose instances ended, and sees them through: a function has its processor while it answers, so a run that
 * goes on after the answer goes on slowly, or not at all.
 */
export const recover = onSchedule({ schedule: 'every 2 minutes', timeoutSeconds: 300 }, async () => {
  await (await serve()).recover();
});
