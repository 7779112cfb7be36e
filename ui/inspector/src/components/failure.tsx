import type { InspectorError } from '../../../../src/inspector/api.ts';
import { Folded } from '../../../components/folded.tsx';
import { Json } from '../../../components/json.tsx';

interface Props {
  facts: InspectorError;
  onRetry?: () => void;
  /** Default: of the page's own request. */
  title?: string;
}

/** What went wrong, with all that is known of it. */
export function Failure({ facts: { status, message, details }, onRetry, title }: Props) {
  return (
    <div className="failure" role="alert">
      <p>
        <strong>{title ?? status}</strong> {title && <code>{status}</code>}
      </p>
      <p className="said">{message}</p>
      {details !== undefined && <Folded summary="Details">{() => <Json value={details} />}</Folded>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
