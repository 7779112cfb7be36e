import { flushTracing } from 'genkit/tracing';

/** A second signal within this time, in ms, is a copy of the first: on Ctrl-C the terminal signals npm and this process, and npm may forward it. */
const SAME_SIGNAL_MS = 500;
const PARENT_CHECK_MS = 500;

/** Read at the start of the process, because the parent may end before the server is ready. */
const parent = process.ppid;

export interface EndOptions {
  /** Closes what is open. */
  close: () => Promise<void>;
  /** Reports that closing failed, and ends the process. */
  fail: (error: unknown) => void;
}

/**
 * The first SIGINT or SIGTERM closes everything and ends the process; a second one ends it at once. A signal to `npm start` may only reach the
 * shell between npm and this process, so the end of the parent counts as a first signal too.
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
    // Genkit's own listener ends the process without waiting for streaming replies. Otherwise it only stops the server of the developer
    // tools, which ends with the process anyway; the traces are flushed above.
    process.removeAllListeners(signal);
    process.on(signal, onSignal);
  }
  if (process.env.npm_lifecycle_event === 'start') whenOrphaned(endOnce);
}

/** Ends the process when its parent has ended, because no other process will end it. */
function whenOrphaned(end: () => void): void {
  setInterval(() => process.ppid !== parent && end(), PARENT_CHECK_MS).unref();
}
