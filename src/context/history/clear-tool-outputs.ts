import type { MessageData, Part, ToolResponsePart } from 'genkit';
import { meter } from '../../session/log/message-log.ts';
import { isToolResponse } from '../../session/tool-requests.ts';
import { checkOptions, isListOf, isString, isWhole } from '../../store/check-options.ts';
import type { HistoryStrategy } from '../types.ts';

/** Options of {@link clearToolOutputs}. */
export interface ClearToolOutputsOptions {
  /** The outputs of at least this many turns before the current one stay. */
  keepTurns: number;
  /** Names of the tools whose outputs are cleared. Default: all tools. */
  tools?: readonly string[];
  /**
   * Turns that are cleared at once. With a larger step the beginning of the requests changes less often, so providers' caches serve more.
   * Default: `keepTurns`, at least 2.
   */
  step?: number;
}

/** The most names of members in a stub. */
const MOST_NAMES = 8;

/**
 * Replaces each tool output of older turns by a stub that describes it. The model can call the tool again. An output that is not longer
 * than its stub stays.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown, missing, or of the wrong type.
 * @example
 * const history = [clearToolOutputs({ keepTurns: 3, tools: ['searchOrders'] }), lastTurns(20)];
 */
export function clearToolOutputs(options: ClearToolOutputsOptions): HistoryStrategy {
  checkOptions(
    'clearToolOutputs',
    { ...options, keepTurns: options?.keepTurns ?? null },
    {
      keepTurns: isWhole(0),
      tools: isListOf(isString, 'names of tools'),
      step: isWhole(1),
    },
  );
  const { keepTurns, tools, step = Math.max(2, keepTurns) } = options;
  const names = tools && new Set(tools);
  const stubs = new WeakMap<Part, ToolResponsePart>();
  const cleared = (message: MessageData): MessageData => {
    const content = message.content.map((part) => {
      if (!isToolResponse(part) || names?.has(part.toolResponse.name) === false) return part;
      const stub = stubs.get(part) ?? stubOf(part);
      stubs.set(part, stub);
      return stub;
    });
    return content.some((part, i) => part !== message.content[i]) ? { ...message, content } : message;
  };
  return (history, { turnsOf }) => {
    const turns = turnsOf(history.items);
    const clearedTurns = Math.floor(Math.max(0, turns.length - keepTurns) / step) * step;
    if (clearedTurns === 0) return history;
    const items = turns.flatMap((turn, i) =>
      i >= clearedTurns
        ? turn
        : turn.map((item) => (item.message.role === 'tool' ? { ...item, message: cleared(item.message) } : item)),
    );
    return { ...history, items };
  };
}

/** The part with a stub in place of its output; the same part if the stub is not shorter. */
function stubOf(part: ToolResponsePart): ToolResponsePart {
  const { name, ref, output } = part.toolResponse;
  const { content } = part.toolResponse as { content?: unknown };
  meter.messages++;
  const json = JSON.stringify([output, content]);
  const stub = `Left out, was ${describe(output)} (${json.length} characters). Call the tool again if it is needed.`;
  if (stub.length >= json.length) return part;
  return { ...part, toolResponse: { name, ...(ref !== undefined && { ref }), output: stub } };
}

function describe(output: unknown): string {
  if (typeof output === 'string') return 'a text';
  if (Array.isArray(output)) return `a list of ${output.length}`;
  if (typeof output !== 'object' || output === null) return 'a value';
  const names = Object.keys(output);
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '';
  return `an object with ${names.slice(0, MOST_NAMES).join(', ')}${more}`;
}
