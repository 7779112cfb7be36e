import type { SnapshotNode } from '../../../server/api-types.ts';

const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const COUNT = new Intl.NumberFormat();

/** The time and the tokens of the turn. */
export function TurnFacts({ snapshot: { createdAt, usage } }: { snapshot: SnapshotNode }) {
  const at = new Date(createdAt);
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  return (
    <>
      <time dateTime={createdAt} title={FULL.format(at)}>
        {TIME.format(at)}
      </time>
      {usage && (
        <span className="tokens" title={`${COUNT.format(inputTokens)} in, ${COUNT.format(outputTokens)} out`}>
          {COUNT.format(inputTokens + outputTokens)} tokens
        </span>
      )}
    </>
  );
}
