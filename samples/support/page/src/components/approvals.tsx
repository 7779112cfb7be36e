import { useState } from 'react';
import type { AgentInput, AgentInterrupt } from 'genkitx-agents/client';
import { ApprovalCard, type RefundInterrupt } from './approval-card.tsx';
import { focusComposer } from './composer.tsx';

interface Props {
  questions: AgentInterrupt[];
  onAnswer: (resume: AgentInput['resume']) => void;
}

/** The questions that the agent waits on. All of them are answered together. */
export function Approvals({ questions, onAnswer }: Props) {
  const [decisions, setDecisions] = useState<ReadonlyMap<number, boolean>>(new Map());

  const decide = (index: number, isApproved: boolean) => {
    const made = new Map(decisions).set(index, isApproved);
    setDecisions(made);
    if (made.size < questions.length) return;
    onAnswer({
      restart: questions.filter((_, at) => made.get(at)).map((question) => question.restart()),
      respond: questions.filter((_, at) => !made.get(at)).map((question) => question.respond({ outcome: 'rejected' })),
    });
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

/** The one tool of the agent that asks. */
function isRefund(question: AgentInterrupt): question is RefundInterrupt {
  return question.name === 'requestRefund' && question.question !== undefined;
}
