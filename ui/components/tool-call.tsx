import type { ToolStep } from '../logic/turns.ts';
import { Folded } from './folded.tsx';
import { Json } from './json.tsx';

/** The most characters of the input in the line. */
const MOST_CHARACTERS = 200;

interface Props {
  step: ToolStep;
  /** Whether the turn is running. A turn that waits for an answer is not. */
  isStreaming: boolean;
}

/** A tool call: one line, which opens to show the input and the output. */
export function ToolCall({ step: { name, input, output }, isStreaming }: Props) {
  const isDone = output !== undefined;
  const outcome = isDone ? 'done' : isStreaming ? 'running' : 'not done';
  return (
    <Folded
      className="tool"
      summary={
        <>
          <code>
            {name}({shortly(input)})
          </code>
          <span className="outcome" data-running={!isDone && isStreaming}>
            {outcome}
          </span>
        </>
      }
    >
      {() => (
        <>
          <figure className="json">
            <figcaption>Input</figcaption>
            <Json value={input} />
          </figure>
          {isDone && (
            <figure className="json">
              <figcaption>Output</figcaption>
              <Json value={output} />
            </figure>
          )}
        </>
      )}
    </Folded>
  );
}

function shortly(input: unknown): string {
  const values = typeof input === 'object' && input !== null ? Object.values(input) : [];
  return values
    .map((value) => JSON.stringify(value))
    .join(', ')
    .slice(0, MOST_CHARACTERS);
}
