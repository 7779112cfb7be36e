import { randomUUID } from 'node:crypto';
import { Firestore, type Settings } from '@google-cloud/firestore';

/** The emulator's address. @throws Error that says how to get an emulator. */
export function emulatorHost(): string {
  const host = process.env['FIRESTORE_EMULATOR_HOST'];
  if (!host) throw new Error(process.env['FIRESTORE_EMULATOR_PROBLEM'] ?? 'FIRESTORE_EMULATOR_HOST is not set.');
  return host;
}

/** A client of a database that no other test uses. */
export function openDatabase(projectId = newProject(), settings: Settings = {}): Firestore {
  emulatorHost();
  return new Firestore({ projectId, ...settings });
}

/** The emulator makes a database for any project it is asked for. */
export function newProject(): string {
  return `demo-${randomUUID()}`;
}
