/** Named behaviours of a session service, to test on ours and on the one of Google's Agent Development Kit. */
import type { Choice, Event, Owner, Service, Session, State } from './state-service.ts';

/** The actual and the expected result. */
export type Outcome = [seen: unknown, expected: unknown];

const ADA = { appName: 'shop', userId: 'ada' };
const BOB = { appName: 'shop', userId: 'bob' };
const BANK = { appName: 'bank', userId: 'ada' };
const HOSTILE = ['__proto__', 'constructor', 'toString'];

/** The behaviours. Each is tested on a new service. */
export const CHECKS: { readonly [name: string]: (service: Service) => Promise<Outcome> } = {
  '`user:` state given at `createSession` is seen in the user’s other sessions': async (service) => {
    await service.createSession({ ...ADA, state: { 'user:theme': 'dark' } });
    return [await stateOfNew(service, ADA), { 'user:theme': 'dark' }];
  },
  '`app:` state given at `createSession` is seen by other users': async (service) => {
    await service.createSession({ ...ADA, state: { 'app:discount': 5 } });
    return [await stateOfNew(service, BOB), { 'app:discount': 5 }];
  },
  '`user:` keys of an event are seen in the user’s other sessions, by no other user or app': async (service) => {
    await service.appendEvent(await service.createSession(ADA), delta({ 'user:theme': 'dark' }));
    return [await statesOfNew(service), [{ 'user:theme': 'dark' }, {}, {}]];
  },
  '`app:` keys of an event are seen by all users of the app, by no other app': async (service) => {
    await service.appendEvent(await service.createSession(ADA), delta({ 'app:discount': 5 }));
    return [await statesOfNew(service), [{ 'app:discount': 5 }, { 'app:discount': 5 }, {}]];
  },
  'plain keys belong to one session': async (service) => {
    const session = await service.createSession({ ...ADA, state: { step: 1 } });
    await service.appendEvent(session, delta({ cart: ['tea'] }));
    return [
      [(await read(service, session)).state, await stateOfNew(service, ADA)],
      [{ step: 1, cart: ['tea'] }, {}],
    ];
  },
  '`temp:` keys are not stored': async (service) => {
    const session = await service.createSession({ ...ADA, state: { 'temp:a': 1 } });
    await service.appendEvent(session, delta({ 'temp:b': 1, step: 1 }));
    const { state, events } = await read(service, session);
    return [
      [state, events[0]?.actions?.stateDelta],
      [{ step: 1 }, { step: 1 }],
    ];
  },
  'keys such as `__proto__` are stored like any other key': async (service) => {
    const state = JSON.parse('{"__proto__":{"admin":true},"user:__proto__":1,"constructor":2}') as State;
    const session = await service.createSession(ADA);
    await service.appendEvent(session, delta(state));
    return [(await read(service, session)).state, state];
  },
  'a value that is not JSON is refused': async (service) => {
    const session = await service.createSession(ADA);
    return [await outcome(service.appendEvent(session, delta({ stock: Number.NaN }))), 'refused'];
  },
  'a session is invisible to other users and apps, who can’t delete it': async (service) => {
    const session = await service.createSession({ ...ADA, sessionId: 'mine' });
    const seen = [];
    for (const other of [BOB, BANK, ...HOSTILE.map((id) => ({ appName: id, userId: id }))]) {
      seen.push(await service.getSession({ ...other, sessionId: 'mine' }));
      seen.push(...(await service.listSessions(other)).sessions);
      await service.deleteSession({ ...other, sessionId: 'mine' });
    }
    return [
      [seen.filter((found) => found !== undefined), (await read(service, session)).id],
      [[], 'mine'],
    ];
  },
  'ids such as `__proto__` work like any other id': async (service) => {
    const ids = [];
    for (const id of HOSTILE) {
      const session = await service.createSession({ appName: id, userId: id, sessionId: id });
      await service.appendEvent(session, delta({ 'user:id': id }));
      ids.push((await service.getSession({ appName: id, userId: id, sessionId: id }))?.state['user:id']);
    }
    return [ids, HOSTILE];
  },
  '`createSession` with the id of an existing session is refused': async (service) => {
    const session = await service.createSession({ ...ADA, sessionId: 'one' });
    await service.appendEvent(session, delta({ paid: true }));
    const again = await outcome(service.createSession({ ...ADA, sessionId: 'one' }));
    return [
      [again, (await read(service, session)).state],
      ['refused', { paid: true }],
    ];
  },
  'deleting a session keeps the keys of its user': async (service) => {
    const session = await service.createSession(ADA);
    await service.appendEvent(session, delta({ 'user:theme': 'dark', step: 1 }));
    await service.deleteSession({ ...ADA, sessionId: session.id });
    await service.deleteSession({ ...ADA, sessionId: session.id });
    const found = await service.getSession({ ...ADA, sessionId: session.id });
    return [
      [found, await stateOfNew(service, ADA)],
      [undefined, { 'user:theme': 'dark' }],
    ];
  },
  'events are in the order of the appends, with any timestamps, also with 20 appends at once': async (service) => {
    const session = await service.createSession(ADA);
    const events = Array.from({ length: 20 }, (_, i) => ({ author: 'user', id: `${i}`, timestamp: 1000 - i }));
    await Promise.all(events.map((event) => service.appendEvent(session, event)));
    const ids = events.map(({ id }) => id);
    return [
      [idsOf(session), idsOf(await read(service, session))],
      [ids, ids],
    ];
  },
  '`appendEvent` returns the stored event, and updates the session object': async (service) => {
    const session = await service.createSession(ADA);
    const { id, actions } = await service.appendEvent(session, delta({ step: 1, 'user:n': 1, 'temp:x': 1 }));
    const stored = await read(service, session);
    return [
      [id, actions?.stateDelta, session.state, idsOf(session)],
      [stored.events[0]?.id, { step: 1, 'user:n': 1 }, stored.state, idsOf(stored)],
    ];
  },
  '`numRecentEvents: 2` returns the last two events': async (service) => {
    const session = await withFourEvents(service);
    return [idsOf(await read(service, session, { numRecentEvents: 2 })), ['2', '3']];
  },
  '`numRecentEvents: 0` returns no events': async (service) => {
    const session = await withFourEvents(service);
    return [idsOf(await read(service, session, { numRecentEvents: 0 })), []];
  },
  '`afterTimestamp` returns the events from that time on': async (service) => {
    const session = await withFourEvents(service);
    const found = [];
    for (const afterTimestamp of [2000, 9000]) found.push(idsOf(await read(service, session, { afterTimestamp })));
    return [found, [['1', '2', '3'], []]];
  },
  '`lastUpdateTime` does not go back when an event has an earlier timestamp': async (service) => {
    const session = await service.createSession(ADA);
    await service.appendEvent(session, { author: 'user', timestamp: 1000 });
    return [(await read(service, session)).lastUpdateTime < 1_000_000 ? 'back to 1970' : 'now', 'now'];
  },
  'an event that is appended again is stored once': async (service) => {
    const session = await repeated(service);
    return [idsOf(await read(service, session)), ['a', 'b']];
  },
  'an event that is appended again does not undo later changes': async (service) => {
    const session = await repeated(service);
    return [(await read(service, session)).state, { step: 2 }];
  },
  'an append to a deleted session is refused': async (service) => {
    const session = await service.createSession(ADA);
    await service.deleteSession({ ...ADA, sessionId: session.id });
    return [await outcome(service.appendEvent(session, delta({ paid: true }))), 'refused'];
  },
  'an append to an outdated session object is refused': async (service) => {
    const mine = await service.createSession(ADA);
    await service.appendEvent(await read(service, mine), delta({ stock: 0 }));
    return [await outcome(service.appendEvent(mine, delta({ stock: 9 }))), 'refused'];
  },
  'two requests on one session add one to a key, and again if refused: both count': async (service) => {
    const { id: sessionId } = await service.createSession({ ...ADA, state: { n: 0 } });
    const addOne = async (session: Session): Promise<unknown> => {
      const appended = await outcome(service.appendEvent(session, delta({ n: Number(session.state['n']) + 1 })));
      return appended === 'refused' ? addOne((await service.getSession({ ...ADA, sessionId }))!) : undefined;
    };
    const sessions = [await service.getSession({ ...ADA, sessionId }), await service.getSession({ ...ADA, sessionId })];
    await Promise.all(sessions.map((session) => addOne(session!)));
    return [(await service.getSession({ ...ADA, sessionId }))?.state, { n: 2 }];
  },
  'turns in two sessions of a user add one to a `user:` key: both count': async (service) => {
    await service.addOneInTwoTurns(ADA, 'user:n');
    return [await stateOfNew(service, ADA), { 'user:n': 2 }];
  },
  'changing a fetched session in place does not change the store: plain keys and events': async (service) => {
    const session = await service.createSession({ ...ADA, state: { cart: ['tea'] } });
    const fetched = await read(service, session);
    inPlace(() => (fetched.state['cart'] as string[]).push('gin'));
    inPlace(() => (fetched.events as Event[]).push({ author: 'unknown' }));
    const { state, events } = await read(service, session);
    return [
      [state, events],
      [{ cart: ['tea'] }, []],
    ];
  },
  'changing a fetched session in place does not change the store: `user:` and `app:` keys': async (service) => {
    const session = await service.createSession(ADA);
    await service.appendEvent(session, delta({ 'user:cart': ['tea'], 'app:menu': ['tea'] }));
    const fetched = await read(service, session);
    inPlace(() => (fetched.state['user:cart'] as string[]).push('gin'));
    inPlace(() => (fetched.state['app:menu'] as string[]).push('gin'));
    return [(await read(service, session)).state, { 'user:cart': ['tea'], 'app:menu': ['tea'] }];
  },
  'changing a fetched session in place is refused': async (service) => {
    const session = await read(service, await service.createSession(ADA));
    return [inPlace(() => (session.state['step'] = 1)), 'refused'];
  },
  'changing the state after `createSession` does not change the store': async (service) => {
    const cart = ['tea'];
    const session = await service.createSession({ ...ADA, state: { cart } });
    cart.push('gin');
    return [(await read(service, session)).state, { cart: ['tea'] }];
  },
  'changing an event after the append does not change the store': async (service) => {
    const cart = ['tea'];
    const session = await service.createSession(ADA);
    await service.appendEvent(session, delta({ cart }));
    cart.push('gin');
    const { state, events } = await read(service, session);
    return [
      [state, events[0]?.actions?.stateDelta],
      [{ cart: ['tea'] }, { cart: ['tea'] }],
    ];
  },
};

function delta(stateDelta: State): Event {
  return { author: 'system', actions: { stateDelta } };
}

function idsOf(session: Session): unknown[] {
  return session.events.map(({ id }) => id);
}

async function read(service: Service, { id }: Session, choice?: Choice): Promise<Session> {
  return (await service.getSession({ ...ADA, sessionId: id, ...choice }))!;
}

/** The initial state of a new session, as it is read. */
async function stateOfNew(service: Service, owner: Owner): Promise<State | undefined> {
  const { id: sessionId } = await service.createSession(owner);
  return (await service.getSession({ ...owner, sessionId }))?.state;
}

function statesOfNew(service: Service): Promise<(State | undefined)[]> {
  return Promise.all([ADA, BOB, BANK].map((owner) => stateOfNew(service, owner)));
}

async function withFourEvents(service: Service): Promise<Session> {
  const session = await service.createSession(ADA);
  for (let i = 0; i < 4; i++) {
    await service.appendEvent(session, { author: 'user', id: `${i}`, timestamp: 1000 * (i + 1) });
  }
  return session;
}

/** A session with the events a and b, in which a is appended again at the end. */
async function repeated(service: Service): Promise<Session> {
  const session = await service.createSession(ADA);
  for (const [id, step] of [
    ['a', 1],
    ['b', 2],
    ['a', 1],
  ] as const) {
    await service.appendEvent(session, { ...delta({ step }), id });
  }
  return session;
}

async function outcome(action: Promise<unknown>): Promise<'done' | 'refused'> {
  const [{ status }] = await Promise.allSettled([action]);
  return status === 'fulfilled' ? 'done' : 'refused';
}

function inPlace(change: () => unknown): 'done' | 'refused' {
  try {
    change();
    return 'done';
  } catch {
    return 'refused';
  }
}
