import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';
import { factsOf } from '../api/requests.ts';
import { usePage } from '../page.ts';
import { Failure } from './failure.tsx';

interface Props {
  /** The label of the button, and the title of the question. */
  action: string;
  className?: string;
  /** Says what will be done. */
  children: ReactNode;
  /** Called when the answer is yes. */
  onYes: () => Promise<void>;
}

/** A button that asks before an action that can't be undone. */
export function Confirmed({ action, className, children, onYes }: Props) {
  const [isAsking, setIsAsking] = useState(false);
  return (
    <>
      <button type="button" className={className} onClick={() => setIsAsking(true)}>
        {action}…
      </button>
      {isAsking && (
        <Question action={action} onYes={onYes} onEnd={() => setIsAsking(false)}>
          {children}
        </Question>
      )}
    </>
  );
}

function Question({ action, children, onYes, onEnd }: Omit<Props, 'className'> & { onEnd: () => void }) {
  const { tenant } = usePage();
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<InspectorError>();
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  const answer = async () => {
    setIsBusy(true);
    try {
      await onYes();
      onEnd();
    } catch (failure) {
      setError(factsOf(failure));
      setIsBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-label={action} onClose={onEnd}>
      <h2>{action}?</h2>
      <div className="question">{children}</div>
      {tenant && <p>Tenant: {tenant}</p>}
      {error && <Failure facts={error} />}
      <p className="choices">
        <button type="button" onClick={onEnd}>
          Cancel
        </button>
        <button type="button" className="danger" disabled={isBusy} onClick={() => void answer()}>
          {action}
        </button>
      </p>
    </dialog>
  );
}
