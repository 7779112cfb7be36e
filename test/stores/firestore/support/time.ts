import type { Firestore } from '@google-cloud/firestore';
import { allDocuments } from './at-rest.ts';

export const DAY = 86_400_000;

/** Runs `work` in a time of its own, which passes when it says so. */
export async function withClock(work: (clock: { now: number }) => Promise<void>): Promise<void> {
  const clock = { now: Date.parse('2026-01-01T00:00:00.000Z') };
  const real = Date.now;
  Date.now = () => clock.now;
  try {
    await work(clock);
  } finally {
    Date.now = real;
  }
}

/** What Firestore's TTL policy does, at the earliest moment that it may; with a `share`, to some of what it may remove. */
export async function removeExpired(db: Firestore, now: number, share = 1, random = Math.random): Promise<void> {
  for (const document of await allDocuments(db)) {
    const expireAt = document.get('expireAt') as { toMillis(): number } | undefined;
    if (expireAt && expireAt.toMillis() <= now && (share === 1 || random() < share)) await document.ref.delete();
  }
}
