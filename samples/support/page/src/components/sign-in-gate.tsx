import { useCallback, useEffect, useState, type ReactNode } from 'react';
import type { SignIn } from '../../../server/api-types.ts';
import { neededSignIn } from '../logic/auth.ts';
import { sentenceFor } from '../../../../../ui/logic/problem.ts';
import { Problem } from '../../../../../ui/components/problem.tsx';
import { SignInForm } from './sign-in-form.tsx';

type Step =
  | { kind: 'asking' }
  | { kind: 'signing in'; signIn: SignIn }
  | { kind: 'failed'; problem: string }
  | { kind: 'in' };

/** Shows the page after the sign-in. A local server needs no sign-in. */
export function SignInGate({ children }: { children: ReactNode }) {
  const [step, setStep] = useState<Step>({ kind: 'asking' });
  const enter = useCallback(() => setStep({ kind: 'in' }), []);

  useEffect(() => {
    let current = true;
    const ask = async () => {
      const signIn = await neededSignIn();
      if (!current) return;
      if (signIn) setStep({ kind: 'signing in', signIn });
      else enter();
    };
    ask().catch((error: unknown) => current && setStep({ kind: 'failed', problem: sentenceFor(error) }));
    return () => {
      current = false;
    };
  }, [enter]);

  if (step.kind === 'in') return children;
  if (step.kind === 'signing in') return <SignInForm signIn={step.signIn} onSignedIn={enter} />;
  return step.kind === 'failed' ? <Problem problem={{ text: step.problem }} /> : undefined;
}
