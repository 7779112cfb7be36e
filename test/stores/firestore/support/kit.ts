import { randomUUID } from 'node:crypto';
import { FirestoreSessionStore, type FirestoreSessionStoreOptions } from 'genkitx-agents/google-cloud';
import { sessionStoreConformance, type ConformanceOptions } from 'genkitx-agents/testing';
import type { Encryption } from 'genkitx-agents/privacy';
import { describe, it } from 'vitest';
import { isTorture } from '../../../support/scale.ts';
import { nameOf } from '../../kit-name.ts';
import { clearProject, newProject, openDatabase } from './database.ts';

/**
 * Runs the conformance kit on the emulator, with two clients, like two processes.
 *
 * @param encryption Makes one for each store. Default: the stores write in clear.
 */
export function runKit(
  options: FirestoreSessionStoreOptions,
  kit: Pick<ConformanceOptions, 'effort' | 'subjects'>,
  encryption?: () => Encryption,
): void {
  // Encryption does not depend on the tenant.
  const tenants = isTorture || !encryption;
  const project = newProject();
  const [first, second] = [openDatabase(project), openDatabase(project)];
  let inUse = 0;
  sessionStoreConformance({
    name: nameOf('FirestoreSessionStore', options, encryption !== undefined),
    runner: { describe, it },
    manifest: { capabilities: new FirestoreSessionStore({ db: first }).capabilities, tenants, branching: true },
    ...kit,
    open: async (stage) => {
      inUse++;
      const collection = `kit-${randomUUID()}`;
      const open = (db = first): FirestoreSessionStore =>
        new FirestoreSessionStore({
          db,
          collection,
          ...options,
          ...stage,
          ...(encryption && { encryption: encryption() }),
        });
      const opened = [open(), open(second)];
      return {
        a: opened[0]!,
        b: opened[1]!,
        reopen: async () => {
          const store = open();
          opened.push(store);
          return store;
        },
        close: async () => {
          await Promise.all(opened.map((store) => store.close()));
          // The data of thousands of tapes makes the emulator so slow that calls time out. A database that it does not clear
          // because a listener is just ending is cleared with the next one.
          if (--inUse === 0) await clearProject(project).catch(() => {});
        },
      };
    },
  });
}
