import { readMs, readOfflinePace, readPort } from '../read-env.ts';

/** Settings of a deployed support agent, from its environment. */
export interface CloudSettings {
  /** Set by Cloud Run; functions don't listen themselves. */
  port: number;
  geminiApiKey?: string;
  /** The pause between two words of the offline model, in ms. */
  offlinePaceMs: number;
  /** The time without a heartbeat after which another instance takes a background run over, in ms. */
  leaseMs: number;
  /** How long turns may continue after SIGTERM, in ms. Cloud Run kills the process 10 s after SIGTERM; the rest of the time is for saving. */
  graceMs: number;
}

/** @throws SetupError that names the invalid setting. */
export function readCloudSettings(env: NodeJS.ProcessEnv): CloudSettings {
  return {
    port: readPort(env, 8080),
    geminiApiKey: env.GEMINI_API_KEY || undefined,
    offlinePaceMs: readOfflinePace(env),
    leaseMs: readMs(env, 'LEASE_MS', 30_000),
    graceMs: readMs(env, 'SHUTDOWN_GRACE_MS', 6_000),
  };
}
