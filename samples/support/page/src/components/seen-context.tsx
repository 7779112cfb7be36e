import { useEffect, useRef } from 'react';
import type { MessageData } from 'genkitx-agents/client';
import { useSeenContext } from '../hooks/use-seen-context.ts';
import { ContextReport } from '../../../../../ui/components/context-report.tsx';
import { Folded } from '../../../../../ui/components/folded.tsx';

interface Props {
  snapshotId: string;
  /** Of the conversation. */
  messages: readonly MessageData[];
}

/** What the model was sent in a turn: one line, which opens to show it. */
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
  // Under the last turn it would open out of sight.
  useEffect(() => {
    // In braces: newer browsers answer a promise, which React would take for the effect's end.
    box.current?.scrollIntoView({ block: 'nearest' });
  }, [seen]);
  return (
    <div className="contents" aria-busy={!seen} ref={box}>
      {!seen && <p className="empty">Reading…</p>}
      {seen && 'problem' in seen && <p role="alert">{seen.problem}</p>}
      {seen && !('problem' in seen) && !seen.report && <p className="empty">Nothing is known of this turn.</p>}
      {seen && !('problem' in seen) && seen.report && (
        <ContextReport report={seen.report} summary={seen.summary} messages={messages} />
      )}
    </div>
  );
}
