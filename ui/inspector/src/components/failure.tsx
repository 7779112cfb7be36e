import { useContext } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';
import { Folded } from '../../../components/folded.tsx';
import { Json } from '../../../components/json.tsx';
import { PageContext } from '../page.ts';

interface Props {
  facts: InspectorError;
  onRetry?: () => void;
  /** Default: the status. */
  title?: string;
}

/** An error with its details. */
export function Failure({ facts: { status, message, details }, onRetry, title }: Props) {
  const page = useContext(PageContext);
  const errorId = (details as { errorId?: unknown } | undefined)?.errorId;
  return (
    <div className="failure" role="alert">
      <p>
        <strong>{title ?? status}</strong> {title && <code>{status}</code>}
      </p>
      <p className="said">{message}</p>
      {typeof errorId === 'string' && (
        <p>
          The log of the process that ran the turn has more about this error, under the id <code>{errorId}</code>.
        </p>
      )}
      {onRetry && page?.info.hasTenants && !page.tenant && (
        <p>If the store needs a tenant, enter it in the field above.</p>
      )}
      {details !== undefined && <Folded summary="Details">{() => <Json value={details} />}</Folded>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
