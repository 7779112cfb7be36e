import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KeyQueue } from '../../../src/store/parts/key-queue.ts';
import { random, seed } from '../../support/scale.ts';

describe('KeyQueue', () => {
  it('atomic update: 200 concurrent read-modify-writes of one key give 200', async () => {
    const queue = new KeyQueue();
    let value = 0;
    const increment = async (): Promise<void> => {
      const read = value;
      await new Promise((resolve) => setImmediate(resolve));
      value = read + 1;
    };
    await Promise.all(Array.from({ length: 200 }, () => queue.run('key', increment)));
    expect(value).toBe(200);
    expect(queue.size).toBe(0);
  });

  it(`runs the tasks of a key one by one and in order, whatever fails, under every schedule (seed ${seed})`, async () => {
    const task = fc.record({ key: fc.constantFrom('a', 'b', 'c'), fails: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(task, { minLength: 1, maxLength: 12 }), async (scheduler, tasks) => {
        const queue = new KeyQueue();
        const running = new Set<string>();
        const started: number[] = [];
        const results = tasks.map(({ key, fails }, i) =>
          queue.run(key, async () => {
            expect(running.has(key)).toBe(false);
            running.add(key);
            started.push(i);
            await scheduler.schedule(Promise.resolve());
            running.delete(key);
            if (fails) throw new Error(`task ${i}`);
            return i;
          }),
        );
        const settled = Promise.allSettled(results);
        await scheduler.waitFor(settled);
        for (const [i, result] of (await settled).entries()) {
          expect(result.status).toBe(tasks[i]!.fails ? 'rejected' : 'fulfilled');
        }
        for (const key of ['a', 'b', 'c']) {
          const ofKey = started.filter((i) => tasks[i]!.key === key);
          expect(ofKey).toEqual(ofKey.toSorted((x, y) => x - y));
        }
        expect(started).toHaveLength(tasks.length);
        expect(queue.size).toBe(0);
      }),
      random(100, 5000),
    );
  });

  it('does not let keys wait for each other', async () => {
    const queue = new KeyQueue();
    let open: (() => void) | undefined;
    const blocked = queue.run('a', () => new Promise<void>((resolve) => (open = resolve)));
    await expect(queue.run('b', () => 'done')).resolves.toBe('done');
    expect(queue.size).toBe(1);
    open!();
    await blocked;
  });

  it('turns what a task throws into a rejection', async () => {
    const fail = (): never => {
      throw new Error('at once');
    };
    await expect(new KeyQueue().run('a', fail)).rejects.toThrow('at once');
  });
});
