import { mustGetSnapshot } from './read-snapshot.ts';
import { assertDelay, pause, withLimits } from '../signals.ts';
import type { AgentTransport } from '../transport.ts';
import type { AgentSnapshot, CallOptions, DetachedTask, PollOptions, SnapshotStatus } from '../types.ts';

const DEFAULT_INTERVAL_MS = 1000;

/** A background turn, identified by its snapshot. */
export class BackgroundTask<State> implements DetachedTask<State> {
  readonly snapshotId: string;
  readonly #transport: AgentTransport;

  constructor(snapshotId: string, transport: AgentTransport) {
    this.snapshotId = snapshotId;
    this.#transport = transport;
  }

  async *poll(options: PollOptions = {}): AsyncGenerator<AgentSnapshot<State>, void, undefined> {
    const { intervalMs = DEFAULT_INTERVAL_MS, abortSignal, timeoutMs } = options;
    assertDelay('intervalMs', intervalMs);
    const deadline = performance.now() + (timeoutMs ?? 0);
    const within = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
      const left = timeoutMs === undefined ? undefined : deadline - performance.now();
      return withLimits({ abortSignal, timeoutMs: left }, `Waiting for the task ${this.snapshotId}`, work);
    };
    for (;;) {
      const snapshot = await within((abortSignal) =>
        mustGetSnapshot<State>(this.#transport, { snapshotId: this.snapshotId }, { abortSignal }),
      );
      yield snapshot;
      if (snapshot.status !== 'pending') {
        return;
      }
      await within((signal) => pause(intervalMs, signal));
    }
  }

  async wait(options: PollOptions = {}): Promise<AgentSnapshot<State>> {
    let last: AgentSnapshot<State> | undefined;
    for await (const snapshot of this.poll(options)) {
      last = snapshot;
    }
    // `poll` ends with a snapshot or throws.
    return last as AgentSnapshot<State>;
  }

  abort(options: CallOptions = {}): Promise<SnapshotStatus | undefined> {
    return withLimits(options, `Aborting the task ${this.snapshotId}`, (signal) =>
      this.#transport.abort(this.snapshotId, { abortSignal: signal }),
    );
  }
}
