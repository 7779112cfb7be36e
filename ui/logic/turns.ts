/** A conversation as the page shows it: turns, each with the user's text and the steps of the answer. Pure. */
import type { MessageData, Part } from 'genkitx-agents/client';

export interface TextStep {
  kind: 'text';
  text: string;
}

export interface ToolStep {
  kind: 'tool';
  name: string;
  ref?: string;
  input?: unknown;
  /** Absent while the tool runs, or waits for an answer. */
  output?: unknown;
}

export type Step = TextStep | ToolStep;

export interface Turn {
  /** The index of the user's message. */
  index: number;
  asked: string;
  steps: Step[];
}

/** The turns of a stored conversation: each user message begins one. */
export function turnsOf(messages: readonly MessageData[]): Turn[] {
  const turns: Turn[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    if (role === 'user') turns.push({ index, asked: textOf(content), steps: [] });
    const turn = turns.at(-1);
    if (turn && role !== 'user') turn.steps = withParts(turn.steps, content);
  }
  return turns;
}

/** Adds parts of a message to the steps. */
function withParts(steps: readonly Step[], parts: readonly Part[]): Step[] {
  return parts.reduce<Step[]>((done, part) => withPart(done, part), [...steps]);
}

function withPart(steps: Step[], { text, toolRequest, toolResponse, metadata }: Part): Step[] {
  // A request that waits for an answer comes a second time, with its question.
  if (toolRequest && metadata?.['interrupt'] && steps.some((step) => isOpen(step, toolRequest))) return steps;
  if (toolRequest) {
    const { name, ref, input } = toolRequest;
    return [...steps, { kind: 'tool', name, ref, input }];
  }
  if (toolResponse) {
    const { name, ref, output } = toolResponse;
    const index = steps.findIndex((step) => isOpen(step, toolResponse));
    const request = steps[index];
    if (request?.kind !== 'tool') return [...steps, { kind: 'tool', name, ref, output }];
    return steps.with(index, { ...request, output });
  }
  if (!text) return steps;
  const last = steps.at(-1);
  return last?.kind === 'text'
    ? steps.with(steps.length - 1, { kind: 'text', text: last.text + text })
    : [...steps, { kind: 'text', text }];
}

/** Whether the step is this request, and has no answer yet. */
function isOpen(step: Step, { name, ref }: { name: string; ref?: string }): boolean {
  return step.kind === 'tool' && step.name === name && step.ref === ref && step.output === undefined;
}

/** All text of the agent in the turn. */
export function replyOf({ steps }: Turn): string {
  return steps.flatMap((step) => (step.kind === 'text' ? step.text : [])).join('\n\n');
}

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => part.text ?? '').join('');
}
