import { readdirSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect } from 'vitest';
import type { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';
import { snapshotName } from '../../../../../stores/file/format/names.ts';
import type { Report } from '../scripts/crash-writer.ts';
import { fingerprint, idsOf } from './snapshots.ts';

interface Entry {
  readonly sessionId: string;
  readonly parentId: string | undefined;
  /** The contents that it may have, oldest first: from the last acknowledged one on. */
  prints: string[];
  isSaved: boolean;
  /** It was refused, or was missing after a crash: it must never exist. */
  isRefused: boolean;
}

/** All reports of writers, to compare with a store after the writers were killed. */
export class CrashLedger {
  readonly #entries = new Map<string, Entry>();
  acknowledged = 0;

  readonly note = (line: string): void => {
    const report = JSON.parse(line) as Report;
    if (report.kind === 'resting') return;
    const entry = this.#entries.get(report.id);
    if (report.kind === 'intent') {
      const { id, sessionId, parentId, print } = report;
      if (entry) entry.prints.push(print);
      else this.#entries.set(id, { sessionId, parentId, prints: [print], isSaved: false, isRefused: false });
    } else if (report.kind === 'refused') {
      if (entry) entry.isRefused = true;
    } else if (report.kind === 'kept') {
      entry?.prints.pop();
    } else {
      this.acknowledged++;
      entry!.isSaved = true;
      entry!.prints = entry!.prints.slice(-1);
    }
  };

  /**
   * The store has, of a session whose turns form one chain, all that was acknowledged (of more than `longest` turns the newest so many),
   * each as it was saved, perhaps what was on its way, and nothing else. Answers the ids.
   */
  async audit(store: FileSessionStore, sessionId: string, longest = Infinity): Promise<string[]> {
    const ids = await idsOf(store, sessionId);
    const leaf = await store.getSnapshotMetadata({ sessionId });
    const chain = this.#chainOf(leaf?.snapshotId);
    expect(ids, 'the chain up to the leaf').toEqual(chain.slice(-Math.min(longest, chain.length)));
    const members = new Set(chain);
    const ofSession = [...this.#entries].filter(([, entry]) => entry.sessionId === sessionId);
    const lost = ofSession.filter(([id, entry]) => entry.isSaved && !members.has(id)).map(([id]) => id);
    expect(lost, 'acknowledged, and not before the leaf').toEqual([]);
    for (const id of ids) await this.#auditSnapshot(store, id);
    for (const [id, entry] of ofSession) {
      if (members.has(id)) continue;
      expect(await store.getSnapshot({ snapshotId: id })).toBeUndefined();
      entry.isRefused = true;
    }
    return ids;
  }

  async #auditSnapshot(store: FileSessionStore, id: string): Promise<void> {
    const entry = this.#entries.get(id)!;
    expect(entry.isRefused, `${id} was refused, or was not there before`).toBe(false);
    const snapshot = await store.getSnapshot({ snapshotId: id });
    expect(entry.prints, `what ${id} was saved as`).toContain(fingerprint(snapshot!));
    // A content that was read once must stay.
    entry.prints = [fingerprint(snapshot!)];
    entry.isSaved = true;
  }

  /** From the root, by what was reported. */
  #chainOf(leaf: string | undefined): string[] {
    const chain: string[] = [];
    for (let id = leaf; id !== undefined; id = this.#entries.get(id)?.parentId) {
      expect(this.#entries.has(id), `a writer announced the save of ${id}`).toBe(true);
      chain.push(id);
    }
    return chain.toReversed();
  }
}

/** Files that a closed store does not need: temporary files, locks, and files of snapshots that are not listed. */
export function leftoversIn(folder: string, listed: readonly string[]): string[] {
  const names = new Set(listed.map(snapshotName));
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return files.filter((file) => {
    const [first, second] = file.split('/');
    if (first === '.tmp' || first === '.locks') return true;
    if (file.endsWith('.draft')) return true;
    const isSnapshot = second !== undefined && dirname(file) === first;
    return isSnapshot && !names.has(basename(file));
  });
}
