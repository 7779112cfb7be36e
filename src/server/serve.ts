import { jsonAnswer, noStreamAnswer, type Answer } from './answer/answer.ts';
import { authenticate } from './request/authenticate.ts';
import type { IncomingCall } from './request/call.ts';
import { Backlog, FrameStream, PIECE_CHARS } from './answer/frame-stream.ts';
import { readOptions, type AgentServerOptions } from './options.ts';
import { readBody, type CallBody } from './request/read-body.ts';
import { Refusal, shuttingDown } from './answer/refusal.ts';
import { ResumableTurns, STREAM_ID_HEADER, type StreamCaller } from './answer/resumable-turns.ts';
import { TurnStarts } from './request/turn-starts.ts';
import { createRouteFinder, noSuchPath, type FindRoute, type Route, type ServedAgents } from './request/routes.ts';
import { runAction } from './run-action.ts';
import { httpStatusOfError, toSafeError } from './answer/error-for-caller.ts';
import { validateBody } from './request/validate.ts';

/** Serves agents, independent of the HTTP server. */
export interface AgentServer {
  /** Whether an agent is served at the path. Never rejects. */
  knows(path: string): Promise<boolean>;
  /** Answers a request. Never rejects. */
  serve(call: IncomingCall): Promise<Answer>;
  /** How long a client may stop reading its answer, in ms. */
  readonly readTimeoutMs: number;
  /** The path under which the agents are served. */
  readonly basePath: string;
}

/** @throws `INVALID_ARGUMENT` when the options or the agents are invalid. */
export function createAgentServer(agents: ServedAgents, options: AgentServerOptions): AgentServer {
  const settings = readOptions(options);
  const findRoute = createRouteFinder(agents, settings.basePath);
  const backlog = new Backlog(settings.maxUnreadChars);
  const starts = new TurnStarts();
  const turns = settings.resumable && new ResumableTurns(settings.resumable, { ...settings, backlog });

  const answer = async (call: IncomingCall): Promise<Answer> => {
    let body: CallBody | undefined;
    try {
      const route = await mustFindRoute(findRoute, call);
      if (settings.stopSignal?.aborted) {
        throw shuttingDown();
      }
      if (settings.contextReadsInput) {
        body = await readBody(call, settings);
      }
      const context = await authenticate(call, settings, body);
      body ??= await readBody(call, settings);
      const caller = { agent: route.agent, context };
      const streamId = call.headers[STREAM_ID_HEADER];
      if (route.kind === 'turn' && wantsStream(call) && streamId) {
        // Never runs the turn again, even if no streams are kept: it has already run.
        return (await turns?.resume(streamId, caller, call.signal)) ?? noStreamAnswer();
      }
      const streamToAbort = route.kind === 'abort' ? readStreamId(body.data) : undefined;
      if (streamToAbort !== undefined) {
        return await abortStream(turns, streamToAbort, caller);
      }
      validateBody(route, body);
      const { signal } = call;
      const { timeoutMs, stopSignal } = settings;
      const request = { route, body, context, wantsStream: wantsStream(call), signal };
      return await runAction({ ...request, timeoutMs, stopSignal, backlog, starts, turns });
    } catch (error) {
      return answerError(error, body?.text);
    }
  };

  /** Makes a long document a stream, so that its unread part counts in the backlog. */
  const bound = (answer: Answer): Answer => {
    if (typeof answer.body !== 'string' || answer.body.length <= PIECE_CHARS) {
      return answer;
    }
    const body = new FrameStream({ backlog });
    body.end(answer.body);
    return { ...answer, body };
  };

  return {
    readTimeoutMs: settings.readTimeoutMs,
    basePath: settings.basePath,
    knows: (path) =>
      findRoute(path).then(
        (route) => route !== undefined,
        // serve() reports the error.
        () => true,
      ),
    serve: async (call) => bound(await answer(call)),
  };
}

async function mustFindRoute(findRoute: FindRoute, { path, method }: IncomingCall): Promise<Route> {
  const route = await findRoute(path);
  if (!route) {
    throw noSuchPath();
  }
  if (method !== 'POST') {
    throw new Refusal(405, 'UNIMPLEMENTED', 'Agents answer to POST only.', { headers: { allow: 'POST' } });
  }
  return route;
}

function wantsStream({ headers, query }: IncomingCall): boolean {
  return (headers.accept ?? '').toLowerCase().includes('text/event-stream') || query.get('stream') === 'true';
}

function readStreamId(data: unknown): string | undefined {
  const { streamId } = (data ?? {}) as { streamId?: unknown };
  return typeof streamId === 'string' ? streamId : undefined;
}

/** Aborts a turn by its stream's id: it may be running without a connection. */
async function abortStream(turns: ResumableTurns | undefined, streamId: string, caller: StreamCaller): Promise<Answer> {
  if (!(await turns?.abort(streamId, caller))) {
    throw new Refusal(404, 'NOT_FOUND', 'No turn with this stream is running here.');
  }
  return jsonAnswer(200, { result: { streamId, status: 'pending' } });
}

function answerError(thrown: unknown, request?: string): Answer {
  const error = toSafeError(thrown, request);
  return jsonAnswer(httpStatusOfError(thrown, error), { error }, thrown instanceof Refusal ? thrown.headers : {});
}
