import { AgentError } from '../client/errors.ts';
import { remoteAgent } from '../client/http/remote-agent.ts';
import type {
  AgentAPI,
  AgentInit,
  AgentInput,
  AgentInterrupt,
  AgentTurn,
  ToolRequestPart,
  ToolResponsePart,
} from '../client/types.ts';
import { KeptTurns, type TurnStorage } from './kept-turns.ts';
import { KnownSnapshots, NO_SNAPSHOT_BEFORE, noSuchSnapshot } from './known-snapshots.ts';
import { pointOf } from './point.ts';
import { ChatChunks, type ChatChunk } from './ui-chunks.ts';
import {
  messageOf,
  metadataOf,
  toolPartsOf,
  type AnsweredPart,
  type ChatMessage,
  type WaitsFor,
} from './ui-messages.ts';

/** Options of {@link agentTransport}. */
export interface AgentTransportOptions {
  /**
   * What a tool waits for: an approval (`addToolApprovalResponse`), or an output that the user gives (`addToolOutput`). Default: an approval.
   */
  waitsFor?: WaitsFor;
  /** Returns the output of a tool that the user denied, for the model. Default: a sentence, with the reason. */
  denied?: (interrupt: AgentInterrupt, reason: string | undefined) => unknown;
  /** Where turns are kept for a reload. `false`: nowhere. Default: `localStorage`. */
  storage?: TurnStorage | false;
  /** The prefix of the keys in `storage`: a page with several users puts the user in it. Default: `genkitx-agents.chat`. */
  storageKey?: string;
}

/** A request of `useChat`. */
export interface ChatRequest {
  /** Whether a message was sent, or a reply is generated again. */
  trigger: 'submit-message' | 'regenerate-message';
  /** The id of the chat: the session. */
  chatId: string;
  /** The message that is replaced, or whose reply is generated again. */
  messageId?: string | undefined;
  /** The conversation. */
  messages: readonly ChatMessage[];
  /** Stops the turn. */
  abortSignal?: AbortSignal | undefined;
}

/** A `ChatTransport` of the AI SDK. */
export interface AgentChatTransport {
  /** A stream that is requested again begins with its first chunk. */
  readonly resumeStreamIsReplay: true;
  /** Runs a turn. */
  sendMessages: (request: ChatRequest) => Promise<ReadableStream<ChatChunk>>;
  /** Reads the running turn; `null` when there is none. */
  reconnectToStream: (request: {
    chatId: string;
    abortSignal?: AbortSignal;
  }) => Promise<ReadableStream<ChatChunk> | null>;
}

/** The last turn of a chat. */
interface LastTurn {
  /** Whether messages that come before a new one end with it. */
  isLastOf: (earlier: readonly ChatMessage[], isReplacement: boolean) => boolean;
  /** The snapshot that it was saved as, also when it was stopped. */
  snapshotId: Promise<string | undefined>;
}

/**
 * A transport for `useChat` of the AI SDK (`ai` 6): its chat talks to an agent, and its id names the session. A tool that waits for the user is a
 * tool part that waits for an approval. `metadata` of each reply has the `snapshotId` that the next message continues from; an edited message and
 * a reply that is generated again are branches.
 *
 * @param agent The result of `remoteAgent()`, or the agent's URL.
 * @example
 * import { agentTransport } from 'genkitx-agents/react';
 *
 * const transport = agentTransport('/api/support');
 * // const chat = useChat({ id: 'session-1', transport, resume: true });
 */
export function agentTransport(
  agent: AgentAPI | string | URL,
  {
    waitsFor = () => 'approval',
    denied = describeDenial,
    storage,
    storageKey = 'genkitx-agents.chat',
  }: AgentTransportOptions = {},
): AgentChatTransport {
  const remote = typeof agent === 'string' || agent instanceof URL ? remoteAgent({ url: agent }) : agent;
  const kept = new KeptTurns(storageKey, storage);
  const lastTurns = new Map<string, LastTurn>();
  /** How often the stream of a chat was requested again. */
  const reconnects = new Map<string, number>();

  /** The point from which a new message continues. */
  const initFor = async ({ chatId, messages, messageId, trigger }: ChatRequest): Promise<AgentInit | undefined> => {
    const earlier = messages.slice(0, -1);
    const isReplacement = messageId !== undefined || trigger === 'regenerate-message';
    if (earlier.length === 0) {
      // A replacement of the first message has no earlier snapshot, so it begins a new session.
      const hasSession = isReplacement && (await exists(remote, chatId));
      return hasSession ? undefined : { sessionId: chatId };
    }
    const last = lastTurns.get(chatId);
    const known = (last?.isLastOf(earlier, isReplacement) && (await last.snapshotId)) || snapshotOf(earlier);
    const snapshotId = known || (isReplacement && (await findSnapshotOf(remote, earlier)));
    return snapshotId ? { snapshotId } : { sessionId: chatId };
  };

  const follow = (chatId: string, turn: AgentTurn, isLastOf: LastTurn['isLastOf']): void => {
    const snapshotId = turn.response.then(
      (response) => response.snapshotId,
      () => undefined,
    );
    lastTurns.set(chatId, { isLastOf, snapshotId });
    void snapshotId.then(() => kept.write(chatId, undefined));
  };

  const sendMessages = async (request: ChatRequest): Promise<ReadableStream<ChatChunk>> => {
    const { chatId, messages, abortSignal } = request;
    const last = messages.at(-1);
    if (!last) throw new AgentError({ status: 'INVALID_ARGUMENT', message: 'There is no message to send.' });
    const continued = last.role === 'assistant' ? last : undefined;
    const answers = continued && (await answersIn(remote, continued, denied));
    const init = continued ? { snapshotId: snapshotOf(messages) } : await initFor(request);
    const input: AgentInput = answers ? { resume: answers.resume } : { message: messageOf(last) };
    const onStreamId = (streamId: string) =>
      kept.write(chatId, {
        parentId: init?.snapshotId,
        input,
        streamId,
        ...(continued && { reply: { continued, answers } }),
      });
    const turn = remote.chat(init).sendStream(input, { onStreamId });
    const messageId = idOfUser(messages);
    follow(chatId, turn, (earlier) => idOfUser(earlier) === messageId);
    return streamOf(turn, { abortSignal, stop: () => void turn.stop(), continued, answers, waitsFor });
  };

  const reconnectToStream: AgentChatTransport['reconnectToStream'] = async ({ chatId, abortSignal }) => {
    const running = kept.read(chatId);
    if (running?.streamId === undefined) return null;
    const { parentId, input, streamId, reply } = running;
    const reconnect = (reconnects.get(chatId) ?? 0) + 1;
    reconnects.set(chatId, reconnect);
    let onConnected = () => {};
    const connected = new Promise<void>((resolve) => (onConnected = resolve));
    const chat = remote.chat(parentId === undefined ? { sessionId: chatId } : { snapshotId: parentId });
    const turn = chat.followStream(streamId, input, { onReconnecting: (is) => !is && onConnected() });
    // The user's message is not in the page, so the turn is the last one as long as its parent is.
    follow(chatId, turn, (earlier, isReplacement) => !isReplacement && snapshotOf(earlier) === parentId);
    try {
      await Promise.race([connected, turn.response]);
    } catch (error) {
      // The server no longer has it: the turn is saved, or lost.
      if (AgentError.isInstance(error) && error.status === 'UNAVAILABLE') return null;
      throw error;
    }
    // A turn whose stream is requested again, as in React's strict mode, is not stopped.
    const stop = () => queueMicrotask(() => void (reconnects.get(chatId) === reconnect && turn.stop()));
    return streamOf(turn, { abortSignal, stop, replays: true, waitsFor, ...(reply as Partial<StreamOptions>) });
  };

  return { resumeStreamIsReplay: true, sendMessages, reconnectToStream };
}

interface StreamOptions {
  abortSignal?: AbortSignal | undefined;
  stop: () => void;
  /** The reply that the turn continues. */
  continued?: ChatMessage | undefined;
  /** Its earlier parts are written again. */
  replays?: boolean;
  /** The user's answers to it. */
  answers?: Answers | undefined;
  waitsFor: WaitsFor;
}

function streamOf(turn: AgentTurn, options: StreamOptions): ReadableStream<ChatChunk> {
  const { abortSignal, stop, continued, replays, answers, waitsFor } = options;
  return new ReadableStream<ChatChunk>({
    start: (controller) => {
      let isOpen = true;
      const close = (end: () => void) => {
        if (isOpen) end();
        isOpen = false;
        abortSignal?.removeEventListener('abort', onAbort);
      };
      // Later chunks are not shown.
      const onAbort = () => {
        stop();
        close(() => controller.close());
      };
      if (abortSignal?.aborted) onAbort();
      else abortSignal?.addEventListener('abort', onAbort, { once: true });
      const chunks = new ChatChunks((chunk) => isOpen && controller.enqueue(chunk), continued, answers?.ids);
      const read = async () => {
        chunks.start(replays ? continued : undefined);
        for (const id of answers?.given ?? []) chunks.answered(id, answers!.denied.includes(id));
        for await (const chunk of turn.stream) chunks.chunk(chunk);
        chunks.end(await turn.response, waitsFor);
      };
      read().then(
        () => close(() => controller.close()),
        (error: unknown) => close(() => controller.error(error)),
      );
    },
    cancel: stop,
  });
}

function idOfUser(messages: readonly ChatMessage[]): string | undefined {
  return messages.findLast(({ role }) => role === 'user')?.id;
}

function snapshotOf(messages: readonly ChatMessage[]): string | undefined {
  return messages.map((message) => metadataOf(message).snapshotId).findLast((id) => id !== undefined);
}

/**
 * Finds the snapshot at which a loaded conversation had these messages. Default: it was not loaded by `chatMessagesOf`.
 *
 * @throws AgentError `FAILED_PRECONDITION` when it had none: its first snapshot has later messages too.
 */
async function findSnapshotOf(agent: AgentAPI, messages: readonly ChatMessage[]): Promise<string | undefined> {
  const { loadedFrom } = metadataOf(messages.findLast(({ role }) => role === 'assistant') ?? messages[0]!);
  if (loadedFrom === undefined) return undefined;
  const known = new KnownSnapshots(() => ({ agent }));
  const loaded = await known.read({ snapshotId: loadedFrom });
  if (!loaded) throw noSuchSnapshot(loadedFrom);
  const before = await known.before(pointOf(loaded), messages.filter(({ role }) => role === 'user').length);
  if (before === undefined) throw new AgentError(NO_SNAPSHOT_BEFORE);
  return before;
}

async function exists(agent: AgentAPI, sessionId: string): Promise<boolean> {
  return (await agent.getSnapshot({ sessionId }, { metadataOnly: true })) !== undefined;
}

interface Answers {
  resume: { restart: ToolRequestPart[]; respond: ToolResponsePart[] };
  /** The ids of all calls that waited, of those that the user answered in place of the tool, and of those that were denied. */
  ids: string[];
  given: string[];
  denied: string[];
}

/** The user's answers to the tools that wait in a reply. */
async function answersIn(
  agent: AgentAPI,
  reply: ChatMessage,
  describe: NonNullable<AgentTransportOptions['denied']>,
): Promise<Answers> {
  const { snapshotId } = metadataOf(reply);
  if (snapshotId === undefined) {
    const message = 'The reply has no snapshotId in its metadata: another transport created it.';
    throw new AgentError({ status: 'FAILED_PRECONDITION', message });
  }
  const { interrupts } = await agent.loadChat({ snapshotId });
  const parts = toolPartsOf(reply);
  const answers: Answers = { resume: { restart: [], respond: [] }, ids: [], given: [], denied: [] };
  for (const interrupt of interrupts) {
    const base = interrupt.ref ?? interrupt.name;
    const place = parts.findLastIndex(
      ({ name, toolCallId }) => name === interrupt.name && toolCallId.replace(/~\d+$/, '') === base,
    );
    const [part] = place < 0 ? [] : parts.splice(place, 1);
    answer(answers, interrupt, part, describe);
  }
  return answers;
}

function answer(
  { resume, ids, given, denied }: Answers,
  interrupt: AgentInterrupt,
  part: AnsweredPart | undefined,
  describe: NonNullable<AgentTransportOptions['denied']>,
): void {
  const { state, approval, output, errorText } = part ?? {};
  if (state === 'output-available') resume.respond.push(interrupt.respond(output));
  else if (state === 'output-error') resume.respond.push(interrupt.respond({ error: errorText }));
  else if (state === 'approval-responded' && approval?.approved) {
    resume.restart.push(interrupt.restart(approval.reason === undefined ? undefined : { reason: approval.reason }));
  } else if (state === 'approval-responded') {
    resume.respond.push(interrupt.respond(describe(interrupt, approval?.reason)));
    denied.push(part!.toolCallId);
  } else {
    const message = `The tool ${interrupt.name} still waits for an answer. Answer all waiting tools, then send.`;
    throw new AgentError({ status: 'FAILED_PRECONDITION', message });
  }
  ids.push(part!.toolCallId);
  if (!approval?.approved) given.push(part!.toolCallId);
}

function describeDenial(_interrupt: AgentInterrupt, reason: string | undefined): string {
  return `The user did not allow this.${reason ? ` Reason: ${reason}` : ''}`;
}
