/** The turns that run, of all conversations. They go on whatever the page shows, and are taken up again when it is loaded anew. */
import { beginSession, problemOf, stopTurn, type Problem } from './api.ts';
import { begun, further, type RunningTurn, type TurnRequest } from './running-turn.ts';
import { agentForTurn } from './turn-connection.ts';

const KEY = 'support.turns';

/** What is kept of a turn for when the page is loaded again, by session. Other tabs read it too. */
type Kept = Record<string, TurnRequest & Pick<RunningTurn, 'streamId' | 'problem'>>;

export class RunningTurns {
  readonly #turns = new Map<string, RunningTurn>();
  readonly #aborts = new Map<string, AbortController>();
  readonly #listeners = new Set<() => void>();

  /** Takes up what ran when the page was left, and from now on what other tabs start. */
  takeUp(): void {
    this.#takeUpKept();
    window.addEventListener('storage', ({ key }) => {
      if (key === KEY) this.#takeUpKept();
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** The turn of the session; the same object until it changes. */
  get(sessionId: string | undefined): RunningTurn | undefined {
    return this.#turns.get(sessionId ?? '');
  }

  /** Runs a turn. A session has one at a time. */
  async start(request: TurnRequest): Promise<void> {
    if (this.get(request.sessionId)?.phase === 'running') return;
    this.#set(begun(request));
    await this.#run(request.sessionId);
  }

  /** The server stops the turn and keeps what there is; one that the server does not know is given up here. */
  async stop(sessionId: string): Promise<void> {
    const { streamId } = this.get(sessionId) ?? {};
    if (streamId === undefined || !(await stopTurn(streamId))) this.#aborts.get(sessionId)?.abort();
  }

  /** The turn is shown by its snapshot, or not wanted any more. */
  dismiss(sessionId: string): void {
    this.#turns.delete(sessionId);
    keep(sessionId, undefined);
    this.#notify();
  }

  async #run(sessionId: string, streamId?: string): Promise<void> {
    const abort = new AbortController();
    this.#aborts.set(sessionId, abort);
    let isLost = false;
    const onLost = (isSo: boolean) => (isLost = isSo);
    const onStreamId = (kept: string) => this.#change(sessionId, { streamId: kept });
    try {
      const parentId = this.get(sessionId)?.parentId ?? (await beginSession(sessionId));
      this.#change(sessionId, { parentId });
      const chat = agentForTurn({ streamId, onStreamId, onLost }).chat({ snapshotId: parentId });
      const turn = chat.sendStream(this.get(sessionId)?.input ?? {}, { abortSignal: abort.signal });
      for await (const { raw, custom } of turn.stream) {
        const running = this.get(sessionId);
        if (running) this.#set(further(running, raw, custom));
      }
      const { snapshotId, finishReason } = await turn.response;
      if (snapshotId !== undefined) this.#end(sessionId, { phase: 'saved', savedAs: snapshotId });
      else this.#fail(sessionId, { text: finishReason === 'aborted' ? 'You stopped the reply.' : 'It was not saved.' });
    } catch (error) {
      this.#fail(sessionId, isLost ? LOST : problemOf(error));
    } finally {
      this.#aborts.delete(sessionId);
    }
  }

  #end(sessionId: string, change: Partial<RunningTurn>): void {
    this.#change(sessionId, change);
    keep(sessionId, undefined);
  }

  #fail(sessionId: string, problem: Problem): void {
    this.#change(sessionId, { phase: 'failed', streamId: undefined, problem });
  }

  #change(sessionId: string, change: Partial<RunningTurn>): void {
    const turn = this.get(sessionId);
    if (turn) this.#set({ ...turn, ...change });
  }

  #set(turn: RunningTurn): void {
    const before = this.get(turn.sessionId);
    this.#turns.set(turn.sessionId, turn);
    const isNews =
      before?.parentId !== turn.parentId || before?.streamId !== turn.streamId || before?.phase !== turn.phase;
    if (isNews && turn.phase !== 'saved') keep(turn.sessionId, turn);
    this.#notify();
  }

  #takeUpKept(): void {
    for (const kept of Object.values(readKept())) {
      if (this.get(kept.sessionId)?.phase === 'running') continue;
      const { streamId, problem } = kept;
      if (streamId !== undefined) {
        this.#turns.set(kept.sessionId, begun(kept));
        void this.#run(kept.sessionId, streamId);
      } else if (!this.get(kept.sessionId)) {
        this.#turns.set(kept.sessionId, { ...begun(kept), phase: 'failed', problem: problem ?? LOST });
      }
    }
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

const LOST: Problem = { text: 'The server ended in the middle of this reply.' };

function readKept(): Kept {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Kept;
  } catch {
    return {};
  }
}

function keep(sessionId: string, turn: RunningTurn | undefined): void {
  const { [sessionId]: _before, ...others } = readKept();
  const { parentId, asked, input, known, streamId, problem } = turn ?? {};
  const kept = input && known && { sessionId, parentId, asked, input, known, streamId, problem };
  localStorage.setItem(KEY, JSON.stringify(kept ? { ...others, [sessionId]: kept } : others));
}
