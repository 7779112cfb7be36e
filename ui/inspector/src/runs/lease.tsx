import type { RunFacts, RunLine } from '../../../../src/inspector/api.ts';
import { useNow } from '../components/use-now.ts';
import { duration, time } from '../logic/words.ts';

interface Props {
  run: RunFacts | RunLine;
  /** The server's clock is so many ms before the browser's. */
  skewMs?: number;
}

/** When the worker gave its last sign of life, and what that means. */
export function LeaseText({ run: { state, heartbeatAt, leaseMs }, skewMs = 0 }: Props) {
  const now = useNow() - skewMs;
  if (state === 'released') return <>Its worker handed it over, and no other has taken it.</>;
  if (!heartbeatAt) return <>Its worker has not begun.</>;
  if (!state || state === 'given-up' || leaseMs === undefined)
    return <>Its last sign of life was at {time(heartbeatAt)}.</>;
  const left = Date.parse(heartbeatAt) + leaseMs - now;
  if (left >= 0 && state === 'expired') return <>Expired: the clock of its worker was wrong.</>;
  if (left >= 0) return <>The lease lasts {duration(left)} more.</>;
  return (
    <>
      Expired: its worker gave no sign of life since {time(heartbeatAt)}, and the lease of {duration(leaseMs)} ran out{' '}
      {duration(left)} ago.
    </>
  );
}
