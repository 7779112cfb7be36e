import { useState } from 'react';
import type { AgentInterrupt, ToolRequestPart, ToolResponsePart } from 'genkitx-agents/client';
import { ApprovalCard, type RefundInterrupt } from './approval-card.tsx';
import { focusComposer } from './composer.tsx';

interface Props {
  questions: readonly AgentInterrupt[];
  onAnswer: (answers: (ToolRequestPart | ToolResponsePart)[]) => void;
}

/** The questions that wait for an answer. All are answered together. */
export function Approvals({ questions, onAnswer }: Props) {
  const [decisions, setDecisions] = useState<ReadonlyMap<number, boolean>>(new Map());

  const decide = (index: number, isApproved: boolean) => {
    const made = new Map(decisions).set(index, isApproved);
    setDecisions(made);
    if (made.size < questions.length) return;
    onAnswer(
      questions.map((question, at) => (made.get(at) ? question.restart() : question.respond({ outcome: 'rejected' }))),
    );
    focusComposer();
  };

  return questions.map(
    (question, index) =>
      isRefund(question) && (
        <ApprovalCard
          key={question.ref ?? index}
          refund={question}
          isDecided={decisions.has(index)}
          onDecide={(isApproved) => decide(index, isApproved)}
        />
      ),
  );
}

/** The only tool of the agent that asks. */
function isRefund(question: AgentInterrupt): question is RefundInterrupt {
  return question.name === 'requestRefund' && question.question !== undefined;
}
