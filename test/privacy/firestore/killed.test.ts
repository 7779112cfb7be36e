import type { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { onTestFinished } from 'vitest';
import { allDocuments } from '../../stores/firestore/support/at-rest.ts';
import { clearProject, newProject, openDatabase } from '../../stores/firestore/support/database.ts';
import { redactsWhenKilled } from '../redaction/processes/kill-suite.ts';
import { textsOf } from '../redaction/plants.ts';

redactsWhenKilled('Firestore', async () => {
  const project = newProject();
  const db = openDatabase(project);
  onTestFinished(async () => {
    await db.terminate();
    await clearProject(project);
  });
  return {
    spec: { project },
    find: (values) => findInDatabase(db, values),
    open: () => new FirestoreSessionStore({ db }),
  };
});

/** The values in the paths and fields of all documents: as text, as bytes, packed, and as base64. */
async function findInDatabase(db: Firestore, values: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const document of await allDocuments(db)) {
    const texts = [document.ref.path, ...leavesOf(document.data()).flatMap(textsIn)];
    for (const value of values) {
      if (texts.some((text) => text.includes(value))) found.push(`${value} in ${document.ref.path}`);
    }
  }
  return found;
}

function leavesOf(value: unknown): unknown[] {
  if (value instanceof Uint8Array || typeof value !== 'object' || value === null) return [value];
  return Object.entries(value).flatMap(([name, member]) => [name, ...leavesOf(member)]);
}

function textsIn(leaf: unknown): string[] {
  if (leaf instanceof Uint8Array) return textsOf(leaf);
  const text = String(leaf);
  return /^[\w+/=-]{16,}$/.test(text) ? [text, ...textsOf(Buffer.from(text, 'base64'))] : [text];
}
