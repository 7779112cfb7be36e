import { AgentError } from '../errors.ts';
import { withInterrupts } from './interrupt.ts';
import { assertDelay, pause, withLimits } from '../signals.ts';
import type { AgentTransport } from '../transport.ts';
import type {
  AgentSnapshot,
  CallOptions,
  DetachedTask,
  PollOptions,
  SessionSnapshot,
  SnapshotStatus,
} from '../types.ts';

const DEFAULT_INTERVAL_MS = 1000;

/** Statuses that end the wait. */
const FINAL: ReadonlySet<SnapshotStatus | undefined> = new Set(['completed', 'failed', 'aborted', 'expired']);

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
    assertDelay('timeoutMs', timeoutMs);
    const deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    const within = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
      const left = deadline === undefined ? undefined : deadline - performance.now();
      return withLimits({ abortSignal, timeoutMs: left }, `Waiting for the task ${this.snapshotId}`, work);
    };
    for (;;) {
      const snapshot = await within((signal) => this.#read(signal));
      yield snapshot;
      if (FINAL.has(snapshot.status)) {
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

  async #read(abortSignal: AbortSignal): Promise<AgentSnapshot<State>> {
    const { snapshotId } = this;
    const snapshot = await this.#transport.getSnapshot({ snapshotId }, { abortSignal });
    if (!snapshot) {
      throw new AgentError({
        status: 'NOT_FOUND',
        message: `The snapshot ${snapshotId} of the task no longer exists.`,
      });
    }
    return withInterrupts(snapshot as SessionSnapshot<State>);
  }
}
