import assert from 'node:assert/strict';
import type { SessionSnapshot, SessionSnapshotInput } from '../../../src/store/contract.ts';
import { equal } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** A snapshot with objects at every place where one could be shared. */
function rich(sessionId: string): SessionSnapshotInput {
  return {
    ...snapshot({ sessionId, custom: { list: [{ n: 1 }], deep: { er: { n: 1 } } }, messages: 40 }),
    error: { message: 'kept', details: { list: [1] } },
  };
}

/** Changes every value that can be changed. */
function vandalise(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    vandalise(member);
    if (Object.isFrozen(value)) continue;
    if (typeof member !== 'object') (value as Record<string, unknown>)[key] = 'vandalised';
  }
  if (Array.isArray(value) && !Object.isFrozen(value)) value.push('vandalised');
  else if (Object.isExtensible(value)) (value as Record<string, unknown>)['vandalised'] = true;
}

/** Like {@link vandalise}, for values that may be frozen, so that changing them throws. */
function tryToVandalise(value: unknown): void {
  try {
    vandalise(value);
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error));
  }
}

/** The store shares no object with its callers. */
export const aliasing: Subject = {
  name: 'aliasing',
  tests(kit) {
    incoming(kit);
    outgoing(kit);
  },
};

async function unharmed(handles: readonly Handle[], what: string): Promise<void> {
  for (const handle of handles) {
    equal(await handle.byId('one'), { ...rich('chat'), snapshotId: 'one' }, `${what}, by id`);
    equal(await handle.bySession('chat'), { ...rich('chat'), snapshotId: 'one' }, `${what}, by session`);
  }
}

function incoming(kit: Kit): void {
  kit.test('changing a saved object does not change the store', async ({ a, b }) => {
    const saved = rich('chat');
    await a.save('one', saved);
    vandalise(saved);
    await unharmed([a, b], 'after a change of what was saved');
  });

  kit.test('an object that is partly saved again is not shared with the store', async ({ a, b }) => {
    const shared = rich('chat');
    await a.save('parent', { ...shared, sessionId: 'other', state: { ...shared.state, sessionId: 'other' } });
    await a.save('one', { ...shared, parentId: 'parent' });
    vandalise(shared.state?.messages);
    vandalise(shared.state?.custom);
    const expected = { ...rich('chat'), parentId: 'parent', snapshotId: 'one' };
    equal(await b.byId('one'), expected, 'the snapshot');
    equal((await a.mustGet('parent')).state?.messages, rich('chat').state?.messages, 'the messages of the parent');
  });
}

function outgoing(kit: Kit): void {
  kit.test('changing a read snapshot does not change the store or the snapshots of other readers', async ({ a, b }) => {
    await a.save('one', rich('chat'));
    const kept = await a.mustGet('one');
    const reads = [() => a.byId('one'), () => a.bySession('chat'), () => b.byId('one'), () => b.bySession('chat')];
    for (const read of reads) {
      vandalise(await read());
      await unharmed([a, b], 'after a change of what was read');
    }
    equal(kept, { ...rich('chat'), snapshotId: 'one' }, 'what another reader holds');
  });

  kit.test(
    'a snapshot that is read frozen is a copy or cannot be changed, and can be saved again',
    async ({ a, b }) => {
      await a.save('one', rich('chat'));
      const lookup = { snapshotId: 'one', frozen: true };
      for (const handle of [a, b]) {
        tryToVandalise((await handle.get(lookup))?.state);
        await unharmed([a, b], 'after an attempt to change what was read frozen');
      }
      const state = (await a.get({ sessionId: 'chat', frozen: true }))?.state;
      const longer = { ...state, messages: [...(state?.messages ?? []), { role: 'user' as const, content: [] }] };
      const next = { ...rich('chat'), parentId: 'one' };
      await b.save('two', { ...next, state: longer });
      equal(await a.byId('two'), { ...next, snapshotId: 'two', state: longer }, 'what was saved of it');
      await b.save('two', (await a.get({ snapshotId: 'two', frozen: true }))!);
      equal((await a.mustGet('two')).state, longer, 'what was rewritten as it was');
      equal((await b.mustGet('one')).state, rich('chat').state, 'the state of the parent');
    },
  );

  kit.test('changing the argument of a mutator does not change the store unless it is saved', async ({ a, b }) => {
    await a.save('one', rich('chat'));
    const skip = (current: SessionSnapshot | undefined): null => {
      vandalise(current);
      return null;
    };
    const fail = (current: SessionSnapshot | undefined): never => {
      vandalise(current);
      throw new Error('mine');
    };
    await a.save('one', skip);
    await unharmed([a, b], 'after a skipping mutator');
    await assert.rejects(a.save('one', fail));
    await unharmed([a, b], 'after a throwing mutator');
    let got: SessionSnapshot | undefined;
    await b.save('one', (current) => (got = current!));
    vandalise(got);
    await unharmed([a, b], 'after a mutator that answered what it got');
  });

  kit.test('two snapshots with the same content change independently', async ({ a, b }) => {
    await a.save('one', rich('chat'));
    await a.save('two', { ...rich('chat'), parentId: 'one' });
    await b.save('two', (current) => {
      vandalise(current!.state!.custom);
      return current!;
    });
    equal((await b.mustGet('one')).state, rich('chat').state, 'the state of the parent');
  });

  if (kit.capabilities.watch) {
    kit.test('changing a watcher’s snapshot changes neither the store nor other watchers’ copies', async ({ a, b }) => {
      await a.save('one', rich('chat'));
      const received: SessionSnapshot[] = [];
      const ends = [a.watch('one', (news) => vandalise(news)), a.watch('one', (news) => received.push(news))];
      await kit.eventually(() => received.length > 0, 'the first notification');
      for (const end of ends) end();
      equal(received[0], { ...rich('chat'), snapshotId: 'one' }, 'the notification of the second');
      await unharmed([a, b], 'after a watcher’s change');
    });
  }

  if (kit.capabilities.metadata && kit.capabilities.list) {
    kit.test('changing metadata and lists does not change the store', async ({ a, b }) => {
      await a.save('one', rich('chat'));
      vandalise(await a.metadata({ snapshotId: 'one' }));
      vandalise(await b.listSnapshots({ sessionId: 'chat' }));
      vandalise(await b.listSessions());
      await unharmed([a, b], 'after changes of metadata and lists');
      const { state: _, ...metadata } = rich('chat');
      equal((await a.listSnapshots({ sessionId: 'chat' })).items, [{ ...metadata, snapshotId: 'one' }], 'the list');
      equal((await a.listSessions()).items[0]?.sessionId, 'chat', 'the sessions');
    });
  }
}
