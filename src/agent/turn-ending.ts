import type { RuntimeError } from '../session/turn.ts';
import type { UsageField } from '../session/usage.ts';

/** The end that the runtime gives to a turn. */
export type TurnEnding = (
  | { readonly status: 'aborted'; readonly finishReason: 'aborted' }
  | { readonly status: 'failed'; readonly finishReason: 'failed'; readonly error: RuntimeError }
) &
  UsageField;

export const ABORTED: TurnEnding = { status: 'aborted', finishReason: 'aborted' };

export function failed(error: RuntimeError): TurnEnding {
  return { status: 'failed', finishReason: 'failed', error };
}

/** The ending of a turn that no process will finish. */
export function givenUp(message: string): TurnEnding {
  return failed({ status: 'ABORTED', message });
}
