import { startInstance, type Instance } from './instance.ts';
import { idToken, PUBLIC_KEYS } from './id-tokens.ts';

/** A sample that is deployed: the same to its callers, whatever serves it. */
export interface Deployment {
  name: string;
  /** Starts one more instance on the database of the project. */
  start: (project: string, env?: Record<string, string>) => Promise<Instance>;
  /** Where its agent is, below the instance's address. */
  path: string;
  /** What a user sends to be known. */
  credentials: (project: string, uid: 'ada' | 'bob') => string;
  /** Has the instance look for runs to take over, where it does not by itself. */
  recover: (instance: Instance) => Promise<void>;
}

const KEYS = { ada: 'the-key-of-ada-is-long', bob: 'the-key-of-bob-is-long' };

export const cloudRun: Deployment = {
  name: 'samples/cloud-run',
  start: (project, env) =>
    startInstance('samples/cloud-run/main.ts', {
      GCLOUD_PROJECT: project,
      API_KEYS: `ada=${KEYS.ada},bob=${KEYS.bob}`,
      ...env,
    }),
  path: '/api/support',
  credentials: (_project, uid) => KEYS[uid],
  recover: async () => {},
};

export const firebase: Deployment = {
  name: 'samples/firebase',
  start: (project, env) =>
    startInstance('test/samples/support/function-host.ts', {
      GCLOUD_PROJECT: project,
      TEST_PUBLIC_KEYS: PUBLIC_KEYS,
      ...env,
    }),
  path: '/agents/support',
  credentials: (project, uid) => idToken({ project, uid }),
  recover: async ({ url }) => {
    const { status } = await fetch(`${url}/recover`, { method: 'POST' });
    if (status !== 200) throw new Error(`The scheduled function answered ${status}.`);
  },
};
