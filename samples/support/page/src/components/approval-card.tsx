import { useId } from 'react';
import type { AgentInterrupt } from 'genkitx-agents/client';
import type { RefundInput, RefundOutput, RefundQuestion } from '../../../agent/tools/request-refund.ts';

/** The question of the tool `requestRefund`. */
export type RefundInterrupt = AgentInterrupt<RefundInput, RefundOutput, RefundQuestion>;

interface Props {
  refund: RefundInterrupt;
  isDecided: boolean;
  onDecide: (isApproved: boolean) => void;
}

/** Shows the refund before it is made. */
export function ApprovalCard({ refund: { question }, isDecided, onDecide }: Props) {
  const id = useId();
  if (!question) return undefined;
  const { orderId, amount, customer, items, reason } = question;
  return (
    <section className="card approval" aria-labelledby={id}>
      <h3 id={id}>
        Refund {amount} for order {orderId}?
      </h3>
      <dl>
        <div>
          <dt>To</dt>
          <dd>{customer}</dd>
        </div>
        <div>
          <dt>For</dt>
          <dd>{items.join(', ')}</dd>
        </div>
        <div>
          <dt>Reason</dt>
          <dd>{reason}</dd>
        </div>
      </dl>
      <p className="choices">
        <button type="button" className="primary" disabled={isDecided} onClick={() => onDecide(true)}>
          Approve
        </button>
        <button type="button" disabled={isDecided} onClick={() => onDecide(false)}>
          Reject
        </button>
      </p>
    </section>
  );
}
