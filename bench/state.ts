/**
 * Tests behaviours of state and events on our service and on the in-memory service of Google's Agent Development Kit. Without timings.
 * `docs/state.md` has the table.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'genkit';
import { defineCustomAgent, genkit, InMemorySessionStore, SessionService } from 'genkitx-agents';
import type { Report } from './report.ts';
import { CHECKS, type Outcome } from './state-checks.ts';
import type { Service } from './state-service.ts';

/** Tests all behaviours. Returns for each what is wrong, or `undefined`. */
export function tryAll(open: () => Service): Promise<(string | undefined)[]> {
  return Promise.all(Object.values(CHECKS).map((check) => wrongWith(check(open()))));
}

async function wrongWith(check: Promise<Outcome>): Promise<string | undefined> {
  try {
    const [seen, expected] = (await check).map(asJson);
    return isDeepStrictEqual(seen, expected) ? undefined : `${told(seen)} instead of ${told(expected)}`;
  } catch (error) {
    return `threw ${String(error)}`;
  }
}

function asJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

function told(value: unknown): string {
  return typeof value === 'string' ? value : `\`${JSON.stringify(value)}\``;
}

/** Our service on an in-memory store. */
export function openOurs(): Service {
  const store = new InMemorySessionStore();
  const addOneInTwoTurns: Service['addOneInTwoTurns'] = async ({ appName, userId }, key) => {
    const both = meeting(2);
    const scopes = { user: z.record(z.string(), z.number()) };
    const agent = defineCustomAgent(genkit({}), { name: 'adder', appName, store, scopes }, async (session) => {
      await session.run(async () => {
        await both();
        session.state.update(key, (n) => (n ?? 0) + 1);
      });
      return {};
    });
    const context = { auth: { uid: userId } };
    await Promise.all([1, 2].map(() => agent.chat({}, { context }).send('Add one.')));
  };
  return Object.assign(new SessionService(store), { addOneInTwoTurns });
}

/** Each call of the function waits until it was called this many times. */
function meeting(size: number): () => Promise<void> {
  let here = 0;
  let go: () => void;
  const all = new Promise<void>((resolve) => (go = resolve));
  return () => {
    if (++here === size) go();
    return all;
  };
}

export async function benchState(report: Report): Promise<void> {
  const { loadAdk } = await import('./extra/adk-service.ts');
  const adk = await loadAdk();
  const [ours, theirs] = [await tryAll(openOurs), await tryAll(adk.open)];
  const peer = `ADK ${adk.version}`;
  report.addChecks(...Object.keys(CHECKS).map((name, i) => ({ name, peer, ours: ours[i], theirs: theirs[i] })));
}
