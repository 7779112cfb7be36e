import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { readOfflinePace, readPort } from './read-env.ts';
import { SetupError } from './setup-error.ts';

/** The choices for the model: `auto` uses the best available one. */
const MODEL_CHOICES = ['auto', 'gemini', 'ollama', 'offline'] as const;
export type ModelChoice = (typeof MODEL_CHOICES)[number];

export interface Config {
  /** 0: any free port. */
  port: number;
  host: string;
  /** Absolute. */
  dataDir: string;
  /** Whether personal data is replaced and conversations are encrypted. */
  privacy: boolean;
  /** Absolute. Not in the data folder, so that a copy of the folder can't be read. */
  keyFile: string;
  model: ModelChoice;
  geminiApiKey?: string;
  /** The pause between two words of the offline model, in ms. */
  offlinePaceMs: number;
  /** The e-mail address of the signed-in customer. A setting, because the sample has no login. */
  customer: string;
}

export const USAGE = `npm start takes no arguments; these environment variables change what it does:

  PORT      the port to listen on (3400; 0 takes any free one)
  HOST      the address to listen on (127.0.0.1, which only this machine can reach)
  DATA_DIR  where conversations and orders are kept (.data)
  MODEL     ${MODEL_CHOICES.join(', ')} (auto: Gemini when GEMINI_API_KEY is set, else Ollama when it runs, else offline)
  PRIVACY   on: personal data is replaced before it is written, and conversations are encrypted (off)
  KEY_FILE  the key of PRIVACY=on, made when it is not there (.data.key: the name of the data folder and .key)
  CUSTOMER  who is signed in, by e-mail address (ana@example.com)
  OFFLINE_PACE_MS  between two words of the offline model (30)`;

/** @throws SetupError that names the invalid setting. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const dataDir = resolve(env.DATA_DIR || '.data');
  return {
    port: readPort(env, 3400),
    host: env.HOST || '127.0.0.1',
    dataDir,
    privacy: readPrivacy(env.PRIVACY || 'off'),
    keyFile: resolve(env.KEY_FILE || `${dataDir}.key`),
    model: readModel(env.MODEL || 'auto'),
    geminiApiKey: env.GEMINI_API_KEY || env.GOOGLE_API_KEY || undefined,
    offlinePaceMs: readOfflinePace(env),
    customer: env.CUSTOMER || 'ana@example.com',
  };
}

/**
 * Makes the folder if it is missing.
 *
 * @param setting The setting that names the folder.
 * @throws SetupError if it can't be read and written.
 */
export function prepareFolder(folder: string, setting = 'DATA_DIR'): void {
  const problem = problemWith(folder);
  if (problem) throw new SetupError(`The folder '${folder}' can't be used: ${problem}; name another with ${setting}.`);
}

function problemWith(folder: string): string | undefined {
  try {
    makeFolder(folder);
    if (!statSync(folder).isDirectory()) return 'there is a file of that name';
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return reason(error);
  }
}

/** Node's own `recursive` never returns if an existing folder reports ENOENT, like the folders of /proc. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })) return;
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** Whether only this machine can reach a server that listens on `host`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function readModel(text: string): ModelChoice {
  const choice = MODEL_CHOICES.find((name) => name === text);
  if (choice) return choice;
  throw new SetupError(`MODEL must be one of ${MODEL_CHOICES.join(', ')}, not '${text}'.`);
}

function readPrivacy(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on';
  throw new SetupError(`PRIVACY must be on or off, not '${text}'.`);
}

function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const known: Record<string, string> = {
    EACCES: 'this user may not write there',
    ENOENT: 'no folder can be made there',
    EROFS: 'the file system is read-only',
    // The path does not resolve, but the name exists.
    EEXIST: 'a link in the path leads nowhere',
    ELOOP: 'the links in the path lead in a circle',
    ENAMETOOLONG: 'the name is too long',
    ENOTDIR: 'a part of the path is a file',
    ENOSPC: 'the disk is full',
  };
  return known[code ?? ''] ?? message;
}
