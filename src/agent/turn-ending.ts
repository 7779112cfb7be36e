import type { RuntimeError } from '../session/session-runner.ts';
import type { UsageField } from '../session/usage.ts';

/** How a turn ends that does not end by itself. */
export type TurnEnding = (
  | { readonly status: 'aborted'; readonly finishReason: 'aborted' }
  | { readonly status: 'failed'; readonly finishReason: 'failed'; readonly error: RuntimeError }
) &
  UsageField;

export const ABORTED: TurnEnding = { status: 'aborted', finishReason: 'aborted' };

/** Of a turn that failed. */
export function failed(error: RuntimeError): TurnEnding {
  return { status: 'failed', finishReason: 'failed', error };
}

/** Of a turn that nobody will run to its end. */
export function givenUp(message: string): TurnEnding {
  return failed({ status: 'ABORTED', message });
}
