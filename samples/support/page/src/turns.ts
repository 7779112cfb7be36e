/** A conversation as the page shows it: turns, each with what was asked and the steps of the answer. Pure. */
import type { AgentStreamChunk, MessageData, Part } from 'genkitx-agents/client';

export interface TextStep {
  kind: 'text';
  text: string;
}

export interface ToolStep {
  kind: 'tool';
  name: string;
  ref?: string;
  input?: unknown;
  /** Absent while the tool runs. */
  output?: unknown;
}

export type Step = TextStep | ToolStep;

export interface Turn {
  asked: string;
  steps: Step[];
}

/** The turns of a stored conversation: each user message begins one. */
export function turnsOf(messages: readonly MessageData[]): Turn[] {
  const turns: Turn[] = [];
  for (const { role, content } of messages) {
    if (role === 'user') turns.push({ asked: textOf(content), steps: [] });
    const turn = turns.at(-1);
    if (turn && role !== 'user') turn.steps = addParts(turn.steps, content);
  }
  return turns;
}

/** The turn that is being answered, one chunk further. */
export function withChunk(turn: Turn, { modelChunk }: AgentStreamChunk): Turn {
  return modelChunk ? { ...turn, steps: addParts(turn.steps, modelChunk.content) } : turn;
}

function addParts(steps: readonly Step[], parts: readonly Part[]): Step[] {
  return parts.reduce<Step[]>((done, part) => addPart(done, part), [...steps]);
}

function addPart(steps: Step[], { text, toolRequest, toolResponse }: Part): Step[] {
  if (toolRequest) {
    const { name, ref, input } = toolRequest;
    return [...steps, { kind: 'tool', name, ref, input }];
  }
  if (toolResponse) {
    const { name, ref, output } = toolResponse;
    const index = steps.findIndex(
      (step) => step.kind === 'tool' && step.name === name && step.ref === ref && step.output === undefined,
    );
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

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => part.text ?? '').join('');
}
