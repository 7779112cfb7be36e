import { useEffect, useState } from 'react';
import type { SeenContext } from '../../../server/api-types.ts';
import { readContext } from '../logic/api.ts';
import { sentenceFor } from '../../../../../ui/logic/problem.ts';

/** What the model saw at a snapshot, which never changes; `undefined` until it is read. */
export function useSeenContext(snapshotId: string): SeenContext | { problem: string } | undefined {
  const [seen, setSeen] = useState<SeenContext | { problem: string }>();
  useEffect(() => {
    let current = true;
    const read = async () => {
      const answer = await readContext(snapshotId).catch((error: unknown) => ({ problem: sentenceFor(error) }));
      if (current) setSeen(answer);
    };
    void read();
    return () => {
      current = false;
    };
  }, [snapshotId]);
  return seen;
}
