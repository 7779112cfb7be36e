import type { Step } from '../logic/turns.ts';
import { Reply } from './reply.tsx';
import { ToolCall } from './tool-call.tsx';

/** The texts and tool calls of an agent in a turn, in order. */
export function Steps({ steps, isStreaming = false }: { steps: readonly Step[]; isStreaming?: boolean }) {
  return steps.map((step, index) =>
    step.kind === 'tool' ? (
      <ToolCall key={index} step={step} isStreaming={isStreaming} />
    ) : (
      <Reply key={index} text={step.text} />
    ),
  );
}
