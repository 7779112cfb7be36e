import type { ToolStep } from '../turns.ts';

/** A tool that the agent used: one line, which opens to show what went in and what came out. */
export function ToolCall({ step: { name, input, output } }: { step: ToolStep }) {
  const running = output === undefined;
  return (
    <details className="tool" data-running={running}>
      <summary>
        <code>
          {name}({shortly(input)})
        </code>
        <span className="outcome">{running ? 'running' : 'done'}</span>
      </summary>
      <Json title="Input" value={input} />
      {!running && <Json title="Output" value={output} />}
    </details>
  );
}

function Json({ title, value }: { title: string; value: unknown }) {
  return (
    <figure className="json">
      <figcaption>{title}</figcaption>
      <pre tabIndex={0}>{JSON.stringify(value, undefined, 2)}</pre>
    </figure>
  );
}

function shortly(input: unknown): string {
  const values = typeof input === 'object' && input !== null ? Object.values(input) : [];
  return values.map((value) => JSON.stringify(value)).join(', ');
}
