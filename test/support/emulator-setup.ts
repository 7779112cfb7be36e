import { startEmulator } from './emulator.ts';
import { isTorture } from './scale.ts';

/** In the minutes of `npm test` Java's second compiler takes more time than it saves. */
const BRIEF_JAVA = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC';

/** Before the Firestore tests: one emulator for all of them. Where none is to be had they fail, each saying how to get one. */
export default async function setup(): Promise<() => Promise<void>> {
  // The client looks for credentials on the network otherwise.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  if (!isTorture) process.env['JAVA_TOOL_OPTIONS'] ??= BRIEF_JAVA;
  try {
    const emulator = await startEmulator();
    process.env['FIRESTORE_EMULATOR_HOST'] = emulator.host;
    console.log(`Firestore emulator: ${emulator.source}, at ${emulator.host}`);
    return () => emulator.stop();
  } catch (error) {
    process.env['FIRESTORE_EMULATOR_PROBLEM'] = error instanceof Error ? error.message : String(error);
    console.log(process.env['FIRESTORE_EMULATOR_PROBLEM']);
    return async () => {};
  }
}
