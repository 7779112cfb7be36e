import { useCallback, useEffect, useState } from 'react';
import type { AgentSnapshot } from 'genkitx-agents/client';
import type { ReportState } from '../../../agent/report-agent.ts';
import { reporter } from '../logic/api.ts';

/** The interval between two reads of an unfinished report, in ms. */
const LOOK_EVERY_MS = 500;

export interface Report {
  /** `undefined` until it is read. */
  snapshot?: AgentSnapshot<ReportState>;
  stop: () => void;
}

/** Follows a report in the background: its progress and its result. Each page with its id can follow and stop it. */
export function useReport(reportId: string): Report {
  const [snapshot, setSnapshot] = useState<AgentSnapshot<ReportState>>();

  useEffect(() => {
    let timer: number | undefined;
    let current = true;
    const look = async () => {
      // While the server is away, the last result stays.
      const now = await reporter.getSnapshot(reportId).catch(() => undefined);
      if (!current) return;
      if (now) setSnapshot(now);
      // If its process died, the run is expired until another process takes it over.
      if (!now || now.status === 'pending' || now.status === 'expired') {
        timer = window.setTimeout(() => void look(), LOOK_EVERY_MS);
      }
    };
    void look();
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
  }, [reportId]);

  const stop = useCallback(() => void reporter.abort(reportId).catch(() => {}), [reportId]);
  return { snapshot, stop };
}
