/** The signed-in user. If the server requires it, each request has a token. */
import type { SignIn } from '../../../server/api-types.ts';

const KEY = 'support.key';

/** Returns the current token; `undefined` if there is none. */
let readToken: () => Promise<string | undefined> = async () => undefined;

/** The header that identifies the caller. */
export async function authHeaders(): Promise<Record<string, string>> {
  const token = await readToken();
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The sign-in that the page must show first; `undefined` if the user is signed in. */
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

/** @throws Error if the server does not know the key. */
export async function signInWithKey(key: string): Promise<void> {
  readToken = async () => key;
  const response = await fetch('api/sessions', { headers: await authHeaders() });
  if (!response.ok) throw new Error('The server does not know this key.');
  sessionStorage.setItem(KEY, key);
}

/** @throws Error if the user does not exist. */
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
