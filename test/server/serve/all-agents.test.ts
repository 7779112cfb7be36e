/** One call that serves every agent of a Genkit instance. */
import { genkit as genkitOfGenkit, type GenkitBeta } from 'genkit/beta';
import { remoteAgent } from 'genkitx-agents/client';
import { afterEach, describe, expect, it } from 'vitest';
import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { scriptedModel } from '../../support/scripted-model.ts';
import { ourServers, type Running } from '../support/http.ts';
import { catchErrorLog } from '../support/log.ts';

catchErrorLog();

const makers: { name: string; make: () => GenkitBeta }[] = [
  { name: 'our genkit()', make: () => genkit() },
  { name: 'Genkit’s own', make: () => genkitOfGenkit({}) },
];

describe.each(makers)('$name', ({ make }) => {
  describe.each(ourServers)('$name', ({ serve }) => {
    let running: Running | undefined;
    afterEach(() => running?.stop());

    const start = async () => {
      const ai = make();
      const model = scriptedModel(ai, { otherwise: 'Hi.' }).name;
      ai.defineAgent({ name: 'first', model, store: new InMemorySessionStore() });
      ai.defineFlow('flow', () => 'not for the outside');
      running = await serve(ai, { anonymous: true });
      const define = (name: string) => defineAgent(ai, { name, model, store: new InMemorySessionStore() });
      return { url: running.url, define };
    };

    it('serves all its agents, also those defined later, of either runtime', async () => {
      const { url, define } = await start();
      define('second');
      define('nach außen');
      for (const name of ['first', 'second', 'nach%20au%C3%9Fen']) {
        const agent = remoteAgent({ url: `${url}/${name}` });
        const { text, snapshotId } = await agent.chat().send('Hello.');
        expect(text).toBe('Hi.');
        expect((await agent.getSnapshot(snapshotId!))?.status).toBe('completed');
        expect(await agent.abort(snapshotId!)).toBe('completed');
      }
    });

    it('exposes nothing but its agents', async () => {
      const { url } = await start();
      const paths = [
        'flow',
        'scripted',
        'first/other',
        'first/abort/abort',
        'getSnapshot',
        '',
        '__proto__',
        'x/y',
        '%',
      ];
      for (const path of [...paths, '..%2Fflow%2Fflow', '%2Fflow%2Fflow']) {
        const headers = { 'content-type': 'application/json' };
        const { status } = await fetch(`${url}/${path}`, { method: 'POST', headers, body: '{"data":{}}' });
        expect([path, status]).toEqual([path, 404]);
      }
    });
  });
});
