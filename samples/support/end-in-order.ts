import { flushTracing } from 'genkit/tracing';

/** A signal that comes again so soon, in ms, is still the first one: on Ctrl-C the terminal tells npm and us, and npm may tell us too. */
const SAME_SIGNAL_MS = 500;
const PARENT_CHECK_MS = 500;

/** Read while the process starts: the parent may have ended before the server is ready. */
const parent = process.ppid;

export interface EndOptions {
  /** Closes what is open. */
  close: () => Promise<void>;
  /** Says that closing failed, and ends the process. */
  fail: (error: unknown) => void;
}

/**
 * The first SIGINT or SIGTERM closes everything and ends the process; a second one ends it at once. A signal to `npm start` may reach no
 * further than the shell between npm and this process: that our parent is gone counts as a first signal too.
 */
export function endInOrder({ close, fail }: EndOptions): void {
  let askedAt: number | undefined;
  const end = async () => {
    await close();
    await flushTracing();
    process.exit(0);
  };
  const endOnce = () => {
    if (askedAt !== undefined) return;
    askedAt = performance.now();
    end().catch(fail);
  };
  const onSignal = () => {
    if (askedAt !== undefined && performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
    endOnce();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // Genkit listens too, and ends the process without waiting for the replies that are being streamed. All else that it does then is to
    // stop what serves its developer tools, which ends with the process; the traces are flushed above.
    process.removeAllListeners(signal);
    process.on(signal, onSignal);
  }
  if (process.env.npm_lifecycle_event === 'start') whenOrphaned(endOnce);
}

/** Ends the process when its parent has ended, because no other process would end it. */
function whenOrphaned(end: () => void): void {
  setInterval(() => process.ppid !== parent && end(), PARENT_CHECK_MS).unref();
}
