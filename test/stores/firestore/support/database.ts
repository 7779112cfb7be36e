import { randomUUID } from 'node:crypto';
import { Firestore, type Settings } from '@google-cloud/firestore';

/** The emulator's address. @throws Error that says how to get an emulator. */
export function emulatorHost(): string {
  const host = process.env['FIRESTORE_EMULATOR_HOST'];
  if (!host) throw new Error(process.env['FIRESTORE_EMULATOR_PROBLEM'] ?? 'FIRESTORE_EMULATOR_HOST is not set.');
  return host;
}

const clients = new Set<Firestore>();

/** A client of a database that no other test uses. `host` is another address of the emulator. It ends with its test file. */
export function openDatabase(projectId = newProject(), settings: Settings = {}, host = emulatorHost()): Firestore {
  const before = emulatorHost();
  // The client uses the environment, not its settings.
  process.env['FIRESTORE_EMULATOR_HOST'] = host;
  try {
    const client = new Firestore({ projectId, ...settings });
    clients.add(client);
    return client;
  } finally {
    process.env['FIRESTORE_EMULATOR_HOST'] = before;
  }
}

export async function endClients(): Promise<void> {
  await Promise.all([...clients].map((client) => client.terminate()));
  clients.clear();
}

/** The emulator creates a database for any project. */
export function newProject(): string {
  return `demo-${randomUUID()}`;
}

/** Removes all documents of a project. */
export async function clearProject(project: string): Promise<void> {
  const documents = `http://${emulatorHost()}/emulator/v1/projects/${project}/databases/(default)/documents`;
  const clear = (): Promise<Response> => fetch(documents, { method: 'DELETE' });
  let { ok, status } = await clear();
  // A transaction of a killed process stays open for a while.
  while (status === 409) ({ ok, status } = await clear());
  if (!ok) throw new Error(`The emulator did not clear ${project}: HTTP ${status}.`);
}
