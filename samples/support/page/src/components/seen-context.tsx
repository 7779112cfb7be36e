import { useEffect, useRef } from 'react';
import type { MessageData } from 'genkitx-agents/client';
import { useSeenContext } from '../hooks/use-seen-context.ts';
import { ContextReport } from '../../../../../ui/components/context-report.tsx';
import { Folded } from '../../../../../ui/components/folded.tsx';

interface Props {
  snapshotId: string;
  /** The messages of the conversation. */
  messages: readonly MessageData[];
}

/** What the model saw in a turn: one line, which opens to show the details. */
export function SeenContext(props: Props) {
  return (
    <Folded className="seen" summary="What the model saw">
      {() => <Contents {...props} />}
    </Folded>
  );
}

function Contents({ snapshotId, messages }: Props) {
  const seen = useSeenContext(snapshotId);
  const box = useRef<HTMLDivElement>(null);
  // Under the last turn it would open outside of the visible area.
  useEffect(() => {
    // In braces: newer browsers return a promise, and React would use it as the effect's cleanup.
    box.current?.scrollIntoView({ block: 'nearest' });
  }, [seen]);
  return (
    <div className="contents" aria-busy={!seen} ref={box}>
      {!seen && <p className="empty">Reading…</p>}
      {seen && 'problem' in seen && <p role="alert">{seen.problem}</p>}
      {seen && !('problem' in seen) && !seen.report && <p className="empty">There is no report for this turn.</p>}
      {seen && !('problem' in seen) && seen.report && (
        <ContextReport report={seen.report} summary={seen.summary} messages={messages} />
      )}
    </div>
  );
}
