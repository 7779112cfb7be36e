import { SetupError } from '../setup-error.ts';

/** What a deployed support agent may be told by its environment. */
export interface CloudSettings {
  geminiApiKey?: string;
  /** Between two words of the offline model, in ms. */
  offlinePaceMs: number;
  /** How long a background run may be silent before another instance takes it over, in ms. */
  leaseMs: number;
  /** How long turns may go on after SIGTERM, in ms. Cloud Run kills the process 10 s after it: what is left is for saving. */
  graceMs: number;
}

/** @throws SetupError naming the setting that can't be used. */
export function readCloudSettings(env: NodeJS.ProcessEnv): CloudSettings {
  return {
    geminiApiKey: env.GEMINI_API_KEY || undefined,
    offlinePaceMs: readMs(env, 'OFFLINE_PACE_MS', 0),
    leaseMs: readMs(env, 'LEASE_MS', 30_000),
    graceMs: readMs(env, 'SHUTDOWN_GRACE_MS', 6_000),
  };
}

function readMs(env: NodeJS.ProcessEnv, name: string, unlessTold: number): number {
  const text = env[name] || String(unlessTold);
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new SetupError(`${name} must be a whole number of milliseconds, not '${text}'.`);
}
