import { failedPrecondition, invalidArgument } from '../../../errors.ts';
import { checkOptions, isAny, isBoolean, isOneOf } from '../../../store/check-options.ts';
import { targetOf } from '../../scopes.ts';
import type { IngestOptions } from '../../types.ts';
import type { Pipeline } from '../pipeline.ts';

const INGEST = {
  scope: isAny,
  source: isAny,
  messages: isAny,
  memories: isAny,
  sessionId: isAny,
  extract: isOneOf('verbatim'),
  procedure: isBoolean,
  wait: isBoolean,
};

/**
 * Checks the options of `ingest` for a manager with these settings.
 *
 * @throws `INVALID_ARGUMENT`; `FAILED_PRECONDITION` if the manager lacks a needed option.
 */
export function checkIngest(
  options: IngestOptions,
  { model, extract, app, isSuccess }: Pick<Pipeline, 'model' | 'extract'> & { app: boolean; isSuccess: unknown },
): void {
  checkOptions('ingest', options, INGEST);
  const { scope, messages, procedure } = options;
  targetOf(scope);
  if (scope.kind === 'app' && !app) {
    throw failedPrecondition(
      'Memories of an app are read by all its users: set app: true of memoryManager to make some.',
    );
  }
  const isLearned = messages && options.extract !== 'verbatim';
  if (isLearned && model === undefined && (extract === undefined || procedure)) {
    throw failedPrecondition(
      `Without a model nothing can be learned from messages${procedure ? ', and no procedure be made' : ''}: give memoryManager one, or extract.`,
    );
  }
  if (!procedure) return;
  if (!isSuccess)
    throw failedPrecondition('Procedures are made of sessions that were a success: give memoryManager isSuccess.');
  if (!messages) throw invalidArgument("A procedure is made of 'messages' or a 'sessionId'.");
}
