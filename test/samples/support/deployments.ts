import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiledScript, startInstance, type Instance } from './instance.ts';
import { idToken, PUBLIC_KEYS } from './id-tokens.ts';

/** A sample that is deployed: the same to its callers, whatever serves it. */
export interface Deployment {
  name: string;
  /** The folder below `samples`. */
  folder: 'cloud-run' | 'firebase';
  /**
   * Starts one more instance on the database of the project.
   *
   * @param packed The folder that was packed and copied out of the checkout. Default: the one in the checkout.
   */
  start: (project: string, env?: Record<string, string>, packed?: string) => Promise<Instance>;
  /** The page, below the instance's address. */
  page: string;
  /** Where its agent is, below the instance's address. */
  path: string;
  /** What a user sends to be known. */
  credentials: (project: string, uid: 'ada' | 'bob') => string;
  /** Has the instance look for runs to take over, where it does not by itself. */
  recover: (instance: Instance) => Promise<void>;
}

async function mainOf(folder: Deployment['folder'], packed?: string): Promise<string> {
  return packed ? join(packed, 'build/main.mjs') : compiledScript(`samples/${folder}/main.ts`);
}

const KEYS = { ada: 'the-key-of-ada-is-long', bob: 'the-key-of-bob-is-long' };
/** Ada has the orders of this address. */
export const EMAILS = { ada: 'ana@example.com', bob: 'ben@example.com' };

export const cloudRun: Deployment = {
  name: 'samples/cloud-run',
  folder: 'cloud-run',
  start: async (project, env, packed) =>
    startInstance(await mainOf('cloud-run', packed), {
      GCLOUD_PROJECT: project,
      API_KEYS: `${EMAILS.ada}=${KEYS.ada},${EMAILS.bob}=${KEYS.bob}`,
      ...env,
    }),
  page: '/',
  path: '/api/support',
  credentials: (_project, uid) => KEYS[uid],
  recover: async () => {},
};

export const firebase: Deployment = {
  name: 'samples/firebase',
  folder: 'firebase',
  start: async (project, env, packed) =>
    startInstance(await compiledScript('test/samples/support/function-host.ts'), {
      GCLOUD_PROJECT: project,
      TEST_FUNCTIONS: pathToFileURL(await mainOf('firebase', packed)).href,
      TEST_PUBLIC_KEYS: PUBLIC_KEYS,
      ...env,
    }),
  page: '/agents/',
  path: '/agents/api/support',
  credentials: (project, uid) => idToken({ project, uid, email: EMAILS[uid] }),
  recover: async ({ url }) => {
    const { status } = await fetch(`${url}/recover`, { method: 'POST' });
    if (status !== 200) throw new Error(`The scheduled function answered ${status}.`);
  },
};
