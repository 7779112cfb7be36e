import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { remoteAgent } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { readConfig } from '../../samples/support/config.ts';
import { chooseModel } from '../../samples/support/models/choose-model.ts';
import { serve } from './sample-in-process.ts';

async function withServer(body: (url: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-sample-'));
  const model = await chooseModel(readConfig({ MODEL: 'offline', DATA_DIR: folder }));
  const server = await serve(folder, model);
  try {
    await body(server.url);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

it('keeps how the customer wants to be answered in all conversations, and going back does not undo it', async () => {
  await withServer(async (url) => {
    const agent = remoteAgent<SupportState & { 'user:style'?: string }>({ url: `${url}/api/support` });
    const monday = agent.chat({ sessionId: 'monday' });
    const full = await monday.send('Where is order 1042?');
    expect(full.text).toContain('Refund: ');
    await monday.send('Please keep it brief from now on.');
    expect(monday.state?.['user:style']).toBe('brief');
    const tuesday = agent.chat({ sessionId: 'tuesday' });
    expect((await tuesday.send('Where is order 1042?')).text).not.toContain('Refund: ');
    const back = agent.chat({ snapshotId: full.snapshotId! });
    expect((await back.send('Where is order 1042?')).text).not.toContain('Refund: ');
  });
});

it('makes a refund on what was looked up in the same turn, and keeps no trace of that', async () => {
  await withServer(async (url) => {
    const agent = remoteAgent<SupportState>({ url: `${url}/api/support` });
    const chat = agent.chat({ sessionId: 'refund' });
    expect((await chat.send('Refund order 1035, it is late.')).text).toContain('Done: I refunded');
    expect(JSON.stringify(await agent.getSnapshot(chat.snapshotId!))).not.toContain('lookedUp');
  });
});
