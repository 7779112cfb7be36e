import type { RunFacts, RunState, SnapshotStatus } from '../../../../src/inspector/api.ts';
import { useNow } from '../components/use-now.ts';
import { duration, time } from '../logic/words.ts';

interface Props {
  run: RunFacts;
  status?: SnapshotStatus | RunState;
  /** The server's clock is so many ms before the browser's. */
  skewMs?: number;
}

/** When the worker gave its last sign of life, and what that means. */
export function LeaseText({ run: { heartbeatAt, leaseMs }, status, skewMs = 0 }: Props) {
  const now = useNow() - skewMs;
  if (!heartbeatAt || leaseMs === undefined) return <>Its worker has not begun.</>;
  const left = Date.parse(heartbeatAt) + leaseMs - now;
  const isOver = status === 'completed' || status === 'failed' || status === 'aborted' || status === 'given-up';
  if (isOver) return <>Its last sign of life was at {time(heartbeatAt)}.</>;
  if (left >= 0) return <>The lease lasts {duration(left)} more.</>;
  return (
    <>
      Expired: its worker gave no sign of life since {time(heartbeatAt)}, and the lease of {duration(leaseMs)} ran out{' '}
      {duration(left)} ago.
    </>
  );
}
