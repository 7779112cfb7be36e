import type { AgentInput, MessageData, Part, ResumeOptions, ToolRequestPart, ToolResponsePart } from 'genkit/beta';
import { invalidArgument } from '../../errors.ts';
import { jsonEqual } from '../../json/value.ts';
import { isToolRequest } from '../../session/tool-requests.ts';

type Resume = NonNullable<AgentInput['resume']>;

/** Identifies the tool request of a `resume` entry. */
interface Address {
  name: string;
  ref?: string;
}

/** The arguments with which `generate` continues after interrupts. */
export interface Resumption {
  /** The conversation, in which each waiting request has a unique `ref`. */
  readonly history: readonly MessageData[];
  readonly options: ResumeOptions;
}

/**
 * Converts a client's `resume` into arguments of `generate`. Every entry must answer a pending interrupt of the last message, and each
 * interrupt must be answered once. A restarted tool gets its original input: the input that the client sends is compared, never used.
 *
 * Requests of one tool without a `ref`, or with an empty one, are matched by their inputs, then by their order. They get refs, because
 * `generate` would match all of them to the first, or to none.
 *
 * @throws `INVALID_ARGUMENT`, before any tool runs.
 */
export function toResumption(resume: Resume, history: readonly MessageData[]): Resumption {
  const last = history.at(-1);
  const requests = last?.role === 'model' ? last.content.filter(isToolRequest) : [];
  const pending = pendingOf(requests);
  const answered = new Set<ToolRequestPart>();
  const distinct = withRefs(requests);
  const take = (kind: 'respond' | 'restart', address: Address & { input?: unknown }): ToolRequestPart => {
    const fitting = pending.filter((part) => matches(part, address) && !answered.has(part));
    const request = fitting.find((part) => jsonEqual(part.toolRequest.input, address.input)) ?? fitting[0];
    if (!request) {
      throw invalidArgument(
        `resume.${kind} names ${describe(address)}, but no such tool request is waiting: it was not found in session history ` +
          `or was already answered.`,
      );
    }
    answered.add(request);
    return request;
  };
  const restart = (resume.restart ?? []).map((part) => {
    const request = take('restart', part.toolRequest);
    return restartOf(distinct.get(request) ?? request, part);
  });
  const respond = (resume.respond ?? []).map((part) => {
    const { name, ref } = part.toolResponse;
    const request = take('respond', { name, ref });
    return responseTo(distinct.get(request) ?? request, part);
  });
  if (answered.size === 0 && pending.length === 0) {
    throw invalidArgument('Nothing to resume: no tool request of this session is waiting for an answer.');
  }
  const open = pending.find((part) => !answered.has(part));
  if (open) {
    throw invalidArgument(
      `resume leaves ${describe(open.toolRequest)} unanswered. Answer all waiting tool requests at once.`,
    );
  }
  const done = requests.filter((part) => !pending.includes(part) && !part.metadata?.['pendingOutput']);
  const doneResponses = done.map((part) => doneResponse(distinct.get(part) ?? part));
  return {
    history: distinct.size === 0 || !last ? history : [...history.slice(0, -1), renamed(last, distinct)],
    options: { restart, respond: [...respond, ...doneResponses] },
  };
}

/** Copies with a new ref of all requests that share a name and ref with an earlier one, or have an empty ref. */
function withRefs(requests: readonly ToolRequestPart[]): ReadonlyMap<Part, ToolRequestPart> {
  const distinct = new Map<Part, ToolRequestPart>();
  const taken = new Set<string>();
  for (const part of requests) {
    const { name, ref } = part.toolRequest;
    let free = ref;
    for (let n = 2; free === '' || taken.has(keyOf({ name, ref: free })); n++) free = `${ref || name}-${n}`;
    taken.add(keyOf({ name, ref: free }));
    if (free !== ref) distinct.set(part, { ...part, toolRequest: { ...part.toolRequest, ref: free } });
  }
  return distinct;
}

function renamed(message: MessageData, distinct: ReadonlyMap<Part, ToolRequestPart>): MessageData {
  return { ...message, content: message.content.map((part) => distinct.get(part) ?? part) };
}

/** The key of a tool request among those of its message. */
export function keyOf({ name, ref }: Address): string {
  return JSON.stringify([name, ref]);
}

/**
 * The requests that wait for the caller: the interrupted ones. When none was interrupted and none ran, the agent returned its tool requests
 * (`returnToolRequests`), and all of them wait.
 */
function pendingOf(requests: readonly ToolRequestPart[]): ToolRequestPart[] {
  const interrupted = requests.filter((part) => part.metadata?.['interrupt']);
  if (interrupted.length > 0) return interrupted;
  return requests.filter((part) => !Object.hasOwn(part.metadata ?? {}, 'pendingOutput'));
}

function restartOf(request: ToolRequestPart, sent: ToolRequestPart): ToolRequestPart {
  if (!jsonEqual(sent.toolRequest.input, request.toolRequest.input)) {
    throw invalidArgument(
      `resume.restart for ${describe(request.toolRequest)} has modified inputs. A tool restarts only with its original input.`,
    );
  }
  return {
    toolRequest: request.toolRequest,
    metadata: { ...request.metadata, resumed: sent.metadata?.['resumed'] ?? true },
  };
}

function responseTo(request: ToolRequestPart, sent: ToolResponsePart): ToolResponsePart {
  const { name, ref } = request.toolRequest;
  return { ...sent, toolResponse: { ...sent.toolResponse, name, ...(ref !== undefined && { ref }) } };
}

/**
 * A tool that ran beside an interrupted one keeps its output in the request's metadata, where `generate` finds it only if it is truthy. A falsy
 * output must be passed as a response.
 */
function doneResponse({ toolRequest: { name, ref }, metadata }: ToolRequestPart): ToolResponsePart {
  return { toolResponse: { name, ...(ref !== undefined && { ref }), output: metadata?.['pendingOutput'] ?? null } };
}

function matches({ toolRequest }: ToolRequestPart, { name, ref }: Address): boolean {
  return toolRequest.name === name && toolRequest.ref === ref;
}

function describe({ name, ref }: Address): string {
  return `tool '${name}'${ref === undefined ? '' : ` (ref '${ref}')`}`;
}
