import { enableTelemetry } from 'genkit/tracing';

/** A span of Genkit's tracing. */
export interface Span {
  readonly name: string;
  readonly attributes: Record<string, unknown>;
  readonly status: { code: number; message?: string };
  readonly events: unknown[];
}

let spans: Span[] | undefined;

/** The spans that end, as they end. To be called before an agent runs: Genkit sets its telemetry up once a process. */
export async function collectSpans(): Promise<Span[]> {
  if (spans) return spans;
  spans = [];
  const collector = {
    onStart: () => {},
    onEnd: (span: unknown) => void spans?.push(span as Span),
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  await enableTelemetry({ spanProcessors: [collector] });
  return spans;
}
