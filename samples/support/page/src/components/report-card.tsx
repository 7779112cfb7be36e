import { useReport } from '../hooks/use-report.ts';
import { focusComposer } from './composer.tsx';
import { DownloadLink } from '../../../../../ui/components/download-link.tsx';
import { Folded } from '../../../../../ui/components/folded.tsx';
import { Reply } from '../../../../../ui/components/reply.tsx';

/** A report in the background: its progress, a button to stop it, and the result. */
export function ReportCard({ reportId }: { reportId: string }) {
  const { snapshot, stop } = useReport(reportId);
  const { done = 0, total = 1, step = 'Starting' } = snapshot?.state?.custom ?? {};
  const report = snapshot?.state?.artifacts?.[0];
  const text = report?.parts.map((part) => part.text ?? '').join('') ?? '';
  const isRunning = snapshot?.status === 'pending' || snapshot?.status === 'expired';
  return (
    <section className="card report" aria-label="Monthly report">
      <h3>Monthly report</h3>
      {snapshot && isRunning && (
        <>
          <progress value={done} max={total} aria-label="Progress of the report" />
          <p role="status">
            {snapshot.status === 'expired' ? 'Its server stopped. Another server continues it soon.' : step}
          </p>
          <p className="choices">
            <button
              type="button"
              onClick={() => {
                stop();
                focusComposer();
              }}
            >
              Stop the report
            </button>
          </p>
        </>
      )}
      {snapshot?.status === 'aborted' && (
        <p role="status">
          Stopped after {done} of {total} steps.
        </p>
      )}
      {snapshot?.status === 'failed' && <p role="alert">It failed.</p>}
      {snapshot?.status === 'completed' && (
        <>
          <p role="status">It is ready.</p>
          <Folded summary="Read it">{() => <Reply text={text} />}</Folded>
          <DownloadLink name={report?.name ?? 'report.md'} text={text} />
        </>
      )}
    </section>
  );
}
