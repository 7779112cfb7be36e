import type { ProblemFacts } from '../logic/problem.ts';

interface Props {
  problem: ProblemFacts;
  onRetry?: () => void;
  onDismiss?: () => void;
}

/** An error message with its id in the server's log, and buttons to retry and to dismiss it. */
export function Problem({ problem: { text, errorId }, onRetry, onDismiss }: Props) {
  return (
    <div className="notice problem" role="alert">
      <p>
        {text}
        {errorId && (
          <>
            {' '}
            <small>
              Error <code>{errorId}</code>
            </small>
          </>
        )}
      </p>
      {onRetry && (
        <button type="button" className="retry" onClick={onRetry}>
          Retry
        </button>
      )}
      {onDismiss && (
        <button type="button" className="dismiss" aria-label="Dismiss" onClick={onDismiss}>
          ×
        </button>
      )}
    </div>
  );
}
