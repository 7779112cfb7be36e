import { SetupError } from './setup-error.ts';

/** @throws SetupError if the text is not a port. */
export function readPort(env: NodeJS.ProcessEnv, defaultPort: number): number {
  const text = env.PORT || String(defaultPort);
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new SetupError(`PORT must be a whole number from 0 to 65535, not '${text}'.`);
}

/** @throws SetupError if the text is not a number of milliseconds. */
export function readMs(env: NodeJS.ProcessEnv, name: string, defaultMs: number): number {
  const text = env[name] || String(defaultMs);
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new SetupError(`${name} must be a whole number of milliseconds, not '${text}'.`);
}

/** The pause between two words of the offline model, in ms. The default is about as fast as a language model. */
export function readOfflinePace(env: NodeJS.ProcessEnv): number {
  return readMs(env, 'OFFLINE_PACE_MS', 30);
}
