import { onRequest } from 'firebase-functions/https';
import { onSchedule } from 'firebase-functions/scheduler';
import { startServing, type Serving } from './serving.ts';

let serving: Promise<Serving> | undefined;

/**
 * Set up with the first request, not when the module is loaded: deploying loads it too, and does not support top-level `await`. Also, the
 * framework has then installed its SIGTERM listeners, which the set-up removes.
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
 * Takes over the background runs whose instances ended, and waits until they end. A function has processor time only until it answers, so
 * after the answer a run continues slowly, or not at all.
 */
export const recover = onSchedule({ schedule: 'every 2 minutes', timeoutSeconds: 300 }, async () => {
  await (await serve()).recover();
});
