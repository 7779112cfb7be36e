import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, open, readFile, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FileSessionStore, type RecordStore, type SnapshotStore } from 'genkitx-agents';
import { FileMemoryStore, type MemoryStore } from 'genkitx-agents/memory';
import { envelope, localKeys, piiRules, redacting, redactText } from 'genkitx-agents/privacy';
import { prepareFolder } from './config.ts';
import { SetupError } from './setup-error.ts';

/** How conversations are stored. */
export interface Keeping {
  openStore<S>(folder: string): SnapshotStore<S> & RecordStore;
  openMemories(folder: string): MemoryStore;
  /** Returns the part of a message that the shop may store. */
  redact: (text: string) => Promise<string>;
  /** Lines for the person who started the sample. */
  notes: string[];
}

/** @param keyFile The key file of {@link keepPrivately}. */
export function keepInClear(keyFile: string): Keeping {
  const hint = `off. Conversations that were encrypted with ${keyFile} can be read only with PRIVACY=on`;
  return {
    openStore: (folder) => new FileSessionStore(folder),
    openMemories: (folder) => new FileMemoryStore(folder),
    redact: async (text) => text,
    notes: existsSync(keyFile) ? [`  Privacy    ${hint}`] : [],
  };
}

/**
 * Replaces personal data before it is written, and encrypts the rest with the key in `keyFile`. Makes the key if the file is missing.
 *
 * @throws SetupError if the key file can't be used.
 */
export async function keepPrivately(keyFile: string): Promise<Keeping> {
  const isNew = await makeKeyFile(keyFile);
  const secret = await readKeyFile(keyFile);
  const rules = piiRules();
  const encryption = envelope({ keys: localKeys(secret) });
  return {
    openStore: <S>(folder: string) => redacting(new FileSessionStore<S>(folder, { encryption }), { rules, secret }),
    // Memories are redacted before they get here.
    openMemories: (folder) => new FileMemoryStore(folder, { encryption }),
    redact: async (text) => (await redactText(text, rules)).value,
    notes: [
      '  Privacy    on: personal data is replaced, conversations are encrypted',
      `  Key file   ${keyFile}${isNew ? ' (new: keep a copy, without it no conversation can be read)' : ''}`,
    ],
  };
}

/** Returns whether it made the key. If several processes start at once, one makes the key, and all read the complete key. */
async function makeKeyFile(keyFile: string): Promise<boolean> {
  if (existsSync(keyFile)) return false;
  prepareFolder(dirname(keyFile), 'KEY_FILE');
  const draft = `${keyFile}.${process.pid}.draft`;
  try {
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(`${randomBytes(32).toString('base64')}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(draft, keyFile);
    return true;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new SetupError(`The key file '${keyFile}' can't be made: ${message}; name another with KEY_FILE.`);
  } finally {
    await rm(draft, { force: true });
  }
}

async function readKeyFile(keyFile: string): Promise<Buffer> {
  const text = await readFile(keyFile, 'utf8').catch(({ message }: Error) => {
    throw new SetupError(`The key file '${keyFile}' can't be read: ${message}; name another with KEY_FILE.`);
  });
  // Windows does not have these permissions.
  if (process.platform !== 'win32' && ((await stat(keyFile)).mode & 0o077) !== 0) {
    throw new SetupError(`Other users can read the key file '${keyFile}'; run 'chmod 600' on it, then start again.`);
  }
  const secret = Buffer.from(text, 'base64');
  if (secret.length >= 32) return secret;
  throw new SetupError(
    `'${keyFile}' does not contain a key of at least 32 bytes in base64; name another file with KEY_FILE.`,
  );
}
