import { AgentError, describeError, toAgentError } from '../client/errors.ts';
import { pause } from '../client/signals.ts';
import type {
  AgentAPI,
  AgentInput,
  AgentResponse,
  AgentSnapshot,
  AgentTurn,
  MessageData,
  ToolRequestPart,
  ToolResponsePart,
  TurnOptions,
} from '../client/types.ts';
import { KeptTurns, type KeptTurnRecord } from './kept-turns.ts';
import {
  BEGINNING,
  newTurn,
  afterChunk,
  pointAfter,
  pointOf,
  turnOf,
  turnsIn,
  type Point,
  type RunningTurn,
} from './point.ts';
import { KnownSnapshots, NO_SNAPSHOT_BEFORE, noSuchSnapshot } from './known-snapshots.ts';
import { hasGaps } from './streamed-messages.ts';
import { isResumable, type SnapshotNode } from './snapshot-tree.ts';
import type { ChatView, LiveChatOptions, SendOptions } from './types.ts';
import { viewOf } from './view.ts';

interface RunOptions extends SendOptions {
  /** The stream of a turn that is already running. */
  streamId?: string;
}

/**
 * A conversation with an agent as a page shows it: a plain store, for `useSyncExternalStore` or anything else that subscribes. It is read when
 * it is opened. A running turn continues when it is closed, and its stream is shown when the conversation is opened again.
 */
export class LiveChat<State = unknown, Node extends SnapshotNode = SnapshotNode> {
  /** The current options. The next call uses their agent. */
  options: LiveChatOptions<State, Node>;
  readonly #kept: KeptTurns;
  readonly #listeners = new Set<() => void>();
  #sessionId: string | undefined;
  #point: Point<State> = BEGINNING;
  /** The shown point was the latest one, so later turns are shown too. */
  #followsLatest = true;
  #turn: RunningTurn<State> | undefined;
  #running: AgentTurn<State> | undefined;
  /** The turn must end before it is sent: `begin` is still running. */
  #isStopRequested = false;
  /** The background run that the chat waits for. */
  #background: { snapshotId: string; waiting: AbortController } | undefined;
  readonly #known = new KnownSnapshots<State, Node>(() => this.options);
  /** The chat that holds the state of a conversation without a snapshot. */
  #chat: ReturnType<AgentAPI<State>['chat']> | undefined;
  #hasRead: boolean;
  /** The session is the one that `begin` returned. */
  #hasBegun = false;
  #isOpen = false;
  #reading: Promise<void> | undefined;
  /** While the conversation was being read, a turn of another page began or ended. */
  #isOutdated = false;
  #refreshing: Promise<void> | undefined;
  /** The number of the last call of `#show`. The results of earlier calls are dropped. */
  #lastShow = 0;
  #readError: AgentError | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #view: ChatView<State, Node>;

  constructor(options: LiveChatOptions<State, Node>) {
    const { sessionId, storage, storageKey = 'genkitx-agents.turn' } = options;
    this.options = options;
    this.#sessionId = sessionId;
    this.#kept = new KeptTurns(storageKey, storage);
    this.#hasRead = sessionId === undefined && options.snapshotId === undefined;
    this.#view = this.#createView();
  }

  /** The view to show: the same object until it changes. */
  readonly getView = (): ChatView<State, Node> => this.#view;

  /** Calls the listener after each change of the view. Returns the function that removes it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Reads the conversation and follows its changes by other pages. Returns the function that ends this; a running turn continues. */
  open(): () => void {
    const unsubscribe = this.#kept.subscribe(() => this.#sessionId, this.#onKept);
    this.#isOpen = true;
    if (this.#hasRead) void this.refresh();
    else this.#reading ??= this.#readFirst();
    return () => {
      unsubscribe();
      this.#isOpen = false;
      this.#background?.waiting.abort();
    };
  }

  /**
   * Sends a user message. Resolves at the end of the turn, even if it fails; while a turn runs, nothing is sent. A message to a
   * conversation that can't be read is not sent: it is shown as failed, and `retry` sends it.
   */
  readonly send = async (message: string | MessageData, options?: SendOptions): Promise<void> => {
    await this.#reading;
    if (!this.#hasRead) await this.refresh();
    if (this.#hasRead) {
      await this.#run(this.#point.snapshotId, inputOf(message), options);
      return;
    }
    const unsent = newTurn<State>({ parentId: this.#point.snapshotId, input: inputOf(message), known: [] });
    this.#turn = { ...unsent, phase: 'failed', error: this.#readError };
    this.#notify();
  };

  /** Answers all interrupts at once, with the results of their `respond` and `restart`. Resolves like `send`. */
  readonly respond = async (
    answers: readonly (ToolRequestPart | ToolResponsePart)[],
    options?: SendOptions,
  ): Promise<void> => {
    const restart = answers.filter((part): part is ToolRequestPart => part.toolRequest !== undefined);
    const respond = answers.filter((part): part is ToolResponsePart => part.toolResponse !== undefined);
    await this.#run(this.#point.snapshotId, { resume: { restart, respond } }, options);
  };

  /**
   * Runs the last turn again: a failed or stopped turn in its place, any other as a branch. After a failed read it reads again instead, and a
   * failed turn is not run again if it was saved. Resolves like `send`.
   */
  readonly retry = async (): Promise<void> => {
    if (this.#turn?.phase === 'running') return;
    if (!this.#hasRead || this.#readError || this.#shownTurn()?.phase === 'failed') {
      await this.refresh();
      if (!this.#hasRead || !this.#shownTurn()) return;
    }
    const turn = this.#shownTurn();
    if (turn) {
      if (turn.input) await this.#run(turn.parentId, turn.input);
      else this.dismiss();
    } else if (this.#point.status === 'aborted') {
      await this.#run(this.#point.snapshotId, {});
    } else {
      const index = this.#point.messages.findLastIndex(({ role }) => role === 'user');
      if (index >= 0) await this.editAndBranch(index, this.#point.messages[index]!);
    }
  };

  /**
   * Replaces a user message: begins a branch, and keeps the other. The first message of a session has no snapshot before it, unless `begin` names
   * one: its replacement begins a new session. An agent without a store has no branches: only its first message can be replaced. Resolves like
   * `send`.
   *
   * @param index The index of the message in `messages`.
   * @throws AgentError `INVALID_ARGUMENT` when there is no user message at the index.
   */
  readonly editAndBranch = async (index: number, message: string | MessageData): Promise<void> => {
    const { messages } = this.#view;
    if (messages[index]?.role !== 'user') {
      throw new AgentError({ status: 'INVALID_ARGUMENT', message: `Message ${index} is not a user message.` });
    }
    if (this.#turn?.phase === 'running') return;
    try {
      const point = this.#point;
      // The message of a failed turn is not part of the conversation yet.
      const isUnsaved = index >= point.messages.length;
      const earlier = turnsIn(messages.slice(0, index));
      const before = isUnsaved ? point.snapshotId : await this.#known.before(point, earlier);
      if (before === undefined && !isUnsaved) {
        if (earlier > 0) throw new AgentError(NO_SNAPSHOT_BEFORE);
        this.#leaveSession();
      } else if (before !== point.snapshotId) {
        await this.#show(before);
      }
      await this.#run(before, inputOf(message));
    } catch (error) {
      this.#fail(error);
    }
  };

  /** Stops the running turn. Its reply so far is kept. */
  readonly stop = async (): Promise<void> => {
    if (this.#background) await this.options.agent.abort(this.#background.snapshotId).catch(() => {});
    else if (this.#running) await this.#running.stop();
    else this.#isStopRequested = true;
  };

  /** Removes a turn that failed, or that was stopped and not saved, from the view. */
  readonly dismiss = (): void => {
    if (this.#turn?.phase === 'running') return;
    this.#turn = undefined;
    this.#readError = undefined;
    this.#kept.write(this.#sessionId, undefined);
    this.#notify();
  };

  /** Shows the conversation as it was at a snapshot. Default: the latest. */
  readonly goTo = async (snapshotId?: string): Promise<void> => {
    await this.#reading;
    if (snapshotId !== undefined && snapshotId === this.#point.snapshotId) return;
    await this.#attempt(() => this.#show(snapshotId));
  };

  /** Reads changes that were made elsewhere. Shows new turns after the latest point, if that point is shown. */
  readonly refresh = async (): Promise<void> => {
    await this.#reading;
    // A read that began before may miss changes.
    await this.#refreshing;
    if (!this.#hasRead) {
      this.#reading ??= this.#readFirst();
      await this.#reading;
      return;
    }
    this.#refreshing ??= this.#attempt(() => this.#readAgain()).finally(() => (this.#refreshing = undefined));
    await this.#refreshing;
  };

  async #readFirst(): Promise<void> {
    let kept = this.#kept.read(this.#sessionId);
    this.#isOutdated = false;
    await this.#attempt(async () => {
      if (this.options.listSnapshots) await this.#known.refresh(this.#sessionId);
      await this.#show(this.options.snapshotId ?? kept?.parentId, kept !== undefined);
      this.#hasRead = true;
      // A message that could not be sent before.
      if (this.#turn && !this.#shownTurn()) this.#moveTurn();
      kept = this.#kept.read(this.#sessionId);
      if (kept && !this.#turn) await this.#resumeKept(kept);
    });
    this.#reading = undefined;
    if (this.#hasRead && !kept && this.#isOutdated) await this.refresh();
  }

  /** Continues a turn that another page, or this one before its reload, has begun. */
  async #resumeKept(kept: KeptTurnRecord): Promise<void> {
    const { input, parentId, known = [], streamId } = kept;
    if (streamId !== undefined) {
      // Not waited for: the conversation is read before the turn has ended.
      void this.#run(parentId, input, { streamId }, known);
      return;
    }
    this.#turn = newTurn({ parentId, input, known });
    if (!kept.error && (await this.#readSaved())) return;
    this.#turn = { ...this.#turn, phase: 'failed', error: new AgentError(kept.error ?? PAGE_LEFT) };
  }

  readonly #onKept = (): void => {
    this.#isOutdated = true;
    if (this.#reading || this.#turn?.phase === 'running') return;
    const kept = this.#kept.read(this.#sessionId);
    if (kept?.streamId !== undefined) void this.#resumeKept(kept);
    else if (!kept) void this.refresh();
  };

  /** Never rejects: the error is part of the view. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#readError = undefined;
    } catch (error) {
      this.#readError = toAgentError(error);
    }
    this.#notify();
  }

  async #readAgain(): Promise<void> {
    await this.#known.refresh(this.#sessionId);
    if (this.#turn?.phase === 'failed' && (await this.#showSaved())) return;
    if (!this.#hasConflict && ((this.#turn && this.#turn.phase !== 'stopped') || !this.#followsLatest)) return;
    const { snapshotId } = this.#point;
    const { tree } = this.#known;
    const leaf = snapshotId === undefined || !tree.get(snapshotId) ? tree.latest : tree.newestLeafFrom(snapshotId);
    const newest = tree.runningAfter(leaf) ?? leaf;
    if (newest !== snapshotId && newest !== undefined) await this.#show(newest, true);
    else await this.#known.readForks(snapshotId);
    if (this.#hasConflict) this.#moveTurn();
  }

  /** The turn was refused because another one came first. */
  get #hasConflict(): boolean {
    return this.#turn?.error?.status === 'ABORTED';
  }

  /** Lets a failed turn continue from the shown point. */
  #moveTurn(): void {
    const { snapshotId } = this.#point;
    this.#changeTurn({ parentId: snapshotId, known: this.#childrenOf(snapshotId) });
    this.#keepFailed();
  }

  /**
   * Reads a snapshot and shows it. For one that a conversation can't continue from, shows the point before it, with its turn.
   *
   * @param wanted Default: the latest.
   */
  async #show(wanted?: string, follows = wanted === undefined): Promise<void> {
    const show = ++this.#lastShow;
    const snapshot = await this.#read(wanted);
    let at = snapshot;
    while (at && !isResumable(at)) {
      at = at.parentId === undefined ? undefined : await this.#known.read({ snapshotId: at.parentId });
    }
    if (show !== this.#lastShow) return;
    this.#place(at ? pointOf(at) : BEGINNING, follows);
    if (snapshot && at !== snapshot && !this.#turn) {
      this.#turn = turnOf(snapshot, this.#point);
      if (snapshot.status === 'pending') void this.#waitFor(snapshot.snapshotId);
    }
    await this.#known.readForks(this.#point.snapshotId);
  }

  #place(point: Point<State>, follows: boolean): void {
    this.#lastShow += 1;
    this.#point = point;
    const { snapshotId } = point;
    this.#followsLatest =
      follows || snapshotId === undefined || this.#known.tree.newestLeafFrom(snapshotId) === snapshotId;
    this.#notify();
  }

  /**
   * @param wanted Default, also if this snapshot no longer exists: the latest of the session.
   * @throws AgentError `NOT_FOUND` when there is no such snapshot, and no session is named.
   */
  async #read(wanted: string | undefined): Promise<AgentSnapshot<State> | undefined> {
    const { tree, isListed } = this.#known;
    const runningId = tree.runningAfter(wanted);
    const running = runningId === undefined ? undefined : await this.#known.read({ snapshotId: runningId });
    if (running?.status === 'pending') return running;
    const snapshotId = isListed && !tree.get(wanted) ? (tree.latest ?? tree.nodes.at(-1)?.snapshotId) : wanted;
    const snapshot = snapshotId === undefined ? undefined : await this.#known.read({ snapshotId });
    if (snapshot || isListed) return snapshot;
    if (this.#sessionId !== undefined) return this.#known.read({ sessionId: this.#sessionId });
    if (snapshotId !== undefined) throw noSuchSnapshot(snapshotId);
    return undefined;
  }

  /** Waits for a background turn. */
  async #waitFor(snapshotId: string): Promise<void> {
    const waiting = new AbortController();
    const { signal } = waiting;
    this.#background = { snapshotId, waiting };
    if (!this.#isOpen) waiting.abort();
    for (let isOver = false; !isOver && !signal.aborted;) {
      try {
        await this.options.agent.waitForSnapshot(snapshotId, { abortSignal: signal, metadataOnly: true });
        isOver = true;
      } catch (error) {
        if (signal.aborted) break;
        this.#readError = toAgentError(error);
        this.#notify();
        await pause(WAIT_AGAIN_MS, signal).catch(() => {});
      }
    }
    const isShown = this.#shownTurn() !== undefined;
    this.#background = undefined;
    this.#turn = undefined;
    if (!waiting.signal.aborted) {
      await this.#attempt(async () => {
        await this.#known.refresh(this.#sessionId);
        if (isShown) await this.#show(snapshotId, true);
      });
      return;
    }
    // The chat waits again when it is opened again, which may have happened already.
    this.#hasRead = false;
    if (this.#isOpen) this.#reading ??= this.#readFirst();
  }

  /** Runs a turn, or follows one that is already running. */
  async #run(
    parentId: string | undefined,
    input: AgentInput,
    { streamId, ...options }: RunOptions = {},
    known: readonly string[] = this.#childrenOf(parentId),
  ): Promise<void> {
    if (this.#turn?.phase === 'running') return;
    this.#readError = undefined;
    this.#turn = newTurn({ parentId, input, known });
    if (streamId === undefined) this.#keep();
    this.#notify();
    try {
      if (parentId === undefined && streamId === undefined) {
        this.#isStopRequested = false;
        await this.#begin();
        if (this.#isStopRequested) {
          this.#showStopped();
          return;
        }
      }
      const chat = this.#chatAt(this.#turn.parentId);
      const callbacks: TurnOptions = {
        onStreamId: (id) => this.#keep(id),
        onReconnecting: (reconnecting) => this.#changeTurn({ reconnecting }),
      };
      const running =
        streamId === undefined
          ? chat.sendStream(input, { ...options, ...callbacks })
          : chat.followStream(streamId, input, callbacks);
      this.#running = running;
      for await (const chunk of running.stream) {
        this.#turn = afterChunk(this.#turn, chunk);
        this.#notifySoon();
      }
      const response = await running.response;
      // A listener may send the next message as soon as this turn has ended.
      this.#running = undefined;
      await this.#end(response);
    } catch (error) {
      this.#running = undefined;
      const { status } = toAgentError(error);
      if (status === 'UNAVAILABLE' && (await this.#readSaved())) return;
      this.#fail(error);
      if (status === 'ABORTED') await this.refresh();
    }
  }

  async #begin(): Promise<void> {
    if (!this.options.begin || this.#hasBegun) return;
    const { sessionId, snapshotId } = await this.options.begin(this.#sessionId);
    this.#hasBegun = true;
    this.#sessionId = sessionId;
    if (this.#point.snapshotId === undefined) this.#point = { ...this.#point, snapshotId };
    if (snapshotId !== undefined) this.#known.remember({ snapshotId, status: 'completed' }, []);
    this.#changeTurn({ parentId: snapshotId });
    this.#keep();
  }

  #chatAt(snapshotId: string | undefined): ReturnType<AgentAPI<State>['chat']> {
    const { agent } = this.options;
    if (snapshotId !== undefined) return agent.chat({ snapshotId });
    if (!this.#chat || this.#point.messages.length === 0) {
      this.#chat = agent.chat(this.#sessionId === undefined ? undefined : { sessionId: this.#sessionId });
    }
    return this.#chat;
  }

  /** The edited message is the first one, so there is no earlier snapshot to branch from. */
  #leaveSession(): void {
    this.#sessionId = undefined;
    this.#hasBegun = false;
    this.#known.clear();
    this.#chat = undefined;
    this.#turn = undefined;
    this.#place(BEGINNING, true);
  }

  async #end(response: AgentResponse<State>): Promise<void> {
    const turn = this.#turn!;
    const { snapshotId, finishReason } = response;
    const isStopped = finishReason === 'aborted';
    this.#kept.write(this.#sessionId, undefined);
    this.#sessionId ??= response.sessionId;
    if (isStopped && (snapshotId === undefined || snapshotId === turn.parentId)) {
      this.#showStopped();
      return;
    }
    // The saved messages then differ from the streamed ones.
    const isDifferent = snapshotId !== undefined && (isStopped || hasGaps(turn.messages, this.#point.messages));
    // The turn is saved, whether or not it can be read.
    const saved = isDifferent ? await this.options.agent.getSnapshot(snapshotId).catch(() => undefined) : undefined;
    const next = saved ? pointOf(saved) : pointAfter(this.#point, turn, response);
    if (snapshotId !== undefined) this.#known.remember({ ...next, snapshotId, parentId: turn.parentId }, next.messages);
    // The turn is shown as it was streamed until its snapshot is in the list.
    if (this.options.listSnapshots) await this.#known.refresh(this.#sessionId).catch(() => {});
    const isShown = this.#shownTurn() !== undefined;
    this.#turn = undefined;
    if (isShown) this.#place(next, true);
    await this.#known.readForks(this.#point.snapshotId).catch(() => {});
    this.#notify();
  }

  /** Called when nothing of the turn was saved. */
  #showStopped(): void {
    const turn = this.#turn!;
    this.#kept.write(this.#sessionId, undefined);
    this.#turn = turn.input?.message && { ...turn, phase: 'stopped', reconnecting: false };
    this.#notify();
  }

  #fail(thrown: unknown): void {
    const error = toAgentError(thrown);
    if (!this.#turn) {
      this.#readError = error;
      this.#notify();
      return;
    }
    this.#changeTurn({ phase: 'failed', reconnecting: false, error });
    this.#keepFailed();
  }

  #keepFailed(): void {
    const { status, message, details } = describeError(this.#turn!.error);
    this.#keep(undefined, { status, message, details });
  }

  /** Reads the session again. Returns whether the turn, whose end did not arrive, was saved. */
  async #readSaved(): Promise<boolean> {
    try {
      await this.#known.refresh(this.#sessionId);
      return await this.#showSaved();
    } catch {
      return false;
    }
  }

  /** Shows the snapshot of the turn, if it was saved by another page or without an answer to this one. Returns whether there is one. */
  async #showSaved(): Promise<boolean> {
    const { parentId, input, known } = this.#turn!;
    for (const { snapshotId } of this.#known.tree.childrenOf(parentId)) {
      if (known.includes(snapshotId)) continue;
      const snapshot = await this.#known.read({ snapshotId });
      if (!snapshot?.state || !isSameMessage(input?.message, snapshot.state.messages)) continue;
      const isShown = this.#shownTurn() !== undefined;
      this.#turn = undefined;
      this.#kept.write(this.#sessionId, undefined);
      if (isShown) this.#place(pointOf(snapshot), true);
      this.#notify();
      return true;
    }
    return false;
  }

  #childrenOf(snapshotId: string | undefined): string[] {
    return this.#known.tree.childrenOf(snapshotId).map((child) => child.snapshotId);
  }

  #keep(streamId?: string, error?: KeptTurnRecord['error']): void {
    const { parentId, input, known } = this.#turn!;
    if (input) this.#kept.write(this.#sessionId, { parentId, input, known, streamId, error });
  }

  #changeTurn(change: Partial<RunningTurn<State>>): void {
    this.#turn = { ...this.#turn!, ...change };
    this.#notify();
  }

  /** The turn, if it continues from the shown point. */
  #shownTurn(): RunningTurn<State> | undefined {
    return this.#turn?.parentId === this.#point.snapshotId ? this.#turn : undefined;
  }

  #createView(): ChatView<State, Node> {
    return viewOf({
      sessionId: this.#sessionId,
      point: this.#point,
      turn: this.#shownTurn(),
      isBusy: this.#turn?.phase === 'running',
      known: this.#known,
      isRead: this.#hasRead,
      readError: this.#readError,
    });
  }

  /** Shows all chunks that arrive together at once. */
  #notifySoon(): void {
    this.#timer ??= setTimeout(() => this.#notify(), 0);
  }

  #notify(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#view = this.#createView();
    for (const listener of this.#listeners) listener();
  }
}

const PAGE_LEFT = { status: 'UNAVAILABLE', message: 'The page was closed before the turn ended.' } as const;

/** The pause before the chat waits again for a background turn, after an error. */
const WAIT_AGAIN_MS = 2_000;

function inputOf(message: string | MessageData): AgentInput {
  return { message: typeof message === 'string' ? { role: 'user', content: [{ text: message }] } : message };
}

/** Whether the last user message is the one that was sent. True for a turn without a message. */
function isSameMessage(sent: MessageData | undefined, messages: readonly MessageData[] = []): boolean {
  const last = messages.findLast(({ role }) => role === 'user');
  return sent === undefined || JSON.stringify(sent.content) === JSON.stringify(last?.content);
}
