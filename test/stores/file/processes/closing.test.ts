import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { childScript } from '../../../support/child-script.ts';
import { Fleet } from './support/fleet.ts';

const SCRIPT = await childScript(new URL('./scripts/short-lived.ts', import.meta.url), { isWhole: true });

describe('a store closed by its user', () => {
  const fleet = new Fleet();
  const running = new Set<ReturnType<typeof spawn>>();

  afterEach(() => {
    for (const child of running) child.kill('SIGKILL');
  });
  afterAll(() => fleet.end());

  it('leaves no timer, watcher or handle', async () => {
    const [child] = await fleet.launch(1);
    expect(await child!.call('useAndClose', { folder: fleet.folder() })).toEqual([]);
  });

  for (const ending of ['close', 'forget'] as const) {
    const how = ending === 'close' ? 'after close()' : 'without close(), though it watches';
    it(`does not keep a process running ${how}`, async () => {
      const child = spawn(process.execPath, [SCRIPT, fleet.folder(), ending], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      running.add(child);
      let printed = '';
      child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
      const [code] = (await once(child, 'close')) as [number | null];
      running.delete(child);
      expect({ code, printed }).toEqual({ code: 0, printed: 'last line\n' });
    });
  }
});
