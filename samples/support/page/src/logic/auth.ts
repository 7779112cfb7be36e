/** Who is at the page. Where the server asks for it, each request carries a token. */
import type { SignIn } from '../../../server/api-types.ts';

const KEY = 'support.key';

/** Answers the token of the moment; `undefined` where there is none. */
let readToken: () => Promise<string | undefined> = async () => undefined;

/** The header by which the server knows the caller. */
export async function authHeaders(): Promise<Record<string, string>> {
  const token = await readToken();
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** What the page has to ask for before it can begin; `undefined` when it has it. */
export async function neededSignIn(): Promise<SignIn | undefined> {
  const response = await fetch('api/sign-in');
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  const signIn = (await response.json()) as SignIn;
  if (signIn.kind === 'none') return undefined;
  if (signIn.kind === 'firebase') return (await restoreFirebase(signIn.apiKey)) ? undefined : signIn;
  const key = sessionStorage.getItem(KEY);
  if (key === null) return signIn;
  readToken = async () => key;
  return undefined;
}

/** @throws Error when the server does not know the key. */
export async function signInWithKey(key: string): Promise<void> {
  readToken = async () => key;
  const response = await fetch('api/sessions', { headers: await authHeaders() });
  if (!response.ok) throw new Error('The server does not know this key.');
  sessionStorage.setItem(KEY, key);
}

/** @throws Error when there is no such user. */
export async function signInWithFirebase(apiKey: string, email: string, password: string): Promise<void> {
  const { getAuth, initializeApp, signInWithEmailAndPassword } = await import('./firebase.ts');
  const { user } = await signInWithEmailAndPassword(getAuth(initializeApp({ apiKey })), email, password);
  readToken = () => user.getIdToken();
}

async function restoreFirebase(apiKey: string): Promise<boolean> {
  const { getAuth, initializeApp } = await import('./firebase.ts');
  const auth = getAuth(initializeApp({ apiKey }));
  await auth.authStateReady();
  const user = auth.currentUser;
  if (user) readToken = () => user.getIdToken();
  return user !== null;
}
