import { useState, type FormEvent } from 'react';
import type { SignIn } from '../../../server/api-types.ts';
import { sentenceFor } from '../../../../../ui/logic/problem.ts';
import { signInWithFirebase, signInWithKey } from '../logic/auth.ts';
import { Problem } from '../../../../../ui/components/problem.tsx';

interface Props {
  signIn: SignIn;
  onSignedIn: () => void;
}

/** Asks for an API key, or for an e-mail address and a password. */
export function SignInForm({ signIn, onSignedIn }: Props) {
  const [problem, setProblem] = useState<string>();
  const [email, setEmail] = useState('');
  const [secret, setSecret] = useState('');
  const byKey = signIn.kind !== 'firebase';

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const work = byKey ? signInWithKey(secret) : signInWithFirebase(signIn.apiKey, email, secret);
    work.then(onSignedIn, (error: unknown) => setProblem(sentenceFor(error)));
  };

  return (
    <main className="sign-in">
      <h1>Support agent</h1>
      <form onSubmit={submit}>
        {!byKey && (
          <label>
            E-mail address
            <input type="email" autoComplete="username" value={email} onChange={(e) => setEmail(e.target.value)} />
          </label>
        )}
        <label>
          {byKey ? 'Your key' : 'Password'}
          <input
            type="password"
            autoComplete="current-password"
            value={secret}
            onChange={(e) => setSecret(e.target.value)}
          />
        </label>
        {problem && <Problem problem={{ text: problem }} />}
        <button type="submit" className="primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
