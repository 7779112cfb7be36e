import type { RunFacts, RunLine } from '../../../../src/inspector/api.ts';
import { useNow } from '../components/use-now.ts';
import { duration, time } from '../logic/words.ts';

interface Props {
  run: RunFacts | RunLine;
  /** How many ms the server's clock is behind the browser's. */
  skewMs?: number;
}

/** The state of a run's lease, and the worker's last heartbeat. */
export function LeaseText({ run: { state, heartbeatAt, leaseMs }, skewMs = 0 }: Props) {
  const now = useNow() - skewMs;
  if (state === 'released') return <>Its worker handed it over, and no other worker has taken it over yet.</>;
  if (!heartbeatAt) return <>Its worker has not started.</>;
  if (!state || state === 'given-up' || leaseMs === undefined)
    return <>Its last heartbeat was at {time(heartbeatAt)}.</>;
  const left = Date.parse(heartbeatAt) + leaseMs - now;
  if (left >= 0 && state === 'expired') return <>Expired: the clock of its worker was wrong.</>;
  if (left >= 0) return <>The lease expires in {duration(left)}.</>;
  return (
    <>
      Expired: the last heartbeat of its worker was at {time(heartbeatAt)}, and the lease of {duration(leaseMs)} expired{' '}
      {duration(left)} ago.
    </>
  );
}
