import { readMs, readOfflinePace, readPort } from '../read-env.ts';

/** What a deployed support agent may be told by its environment. */
export interface CloudSettings {
  /** Cloud Run names it; functions don't listen themselves. */
  port: number;
  geminiApiKey?: string;
  /** Between two words of the offline model, in ms. */
  offlinePaceMs: number;
  /** How long a background run may be silent before another instance takes it over, in ms. */
  leaseMs: number;
  /** How long turns may go on after SIGTERM, in ms. Cloud Run kills the process 10 s after it: what is left is for saving. */
  graceMs: number;
}

/** @throws SetupError that names the setting that can't be used. */
export function readCloudSettings(env: NodeJS.ProcessEnv): CloudSettings {
  return {
    port: readPort(env, 8080),
    geminiApiKey: env.GEMINI_API_KEY || undefined,
    offlinePaceMs: readOfflinePace(env),
    leaseMs: readMs(env, 'LEASE_MS', 30_000),
    graceMs: readMs(env, 'SHUTDOWN_GRACE_MS', 6_000),
  };
}
