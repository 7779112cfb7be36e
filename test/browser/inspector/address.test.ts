import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { InspectorInfo } from '../../../src/inspector/api.ts';
import { pageOf } from '../../../ui/inspector/src/page.ts';

/** A view as it was rendered for an address. */
const rendered = (hash: string) => pageOf({} as InspectorInfo, hash);

describe("the inspector's address", () => {
  const location = { hash: '' };
  beforeEach(() => {
    vi.stubGlobal('location', location);
    vi.stubGlobal('history', {
      replaceState: (_state: unknown, _title: string, hash: string) => (location.hash = hash),
    });
    vi.stubGlobal('window', new EventTarget());
    vi.stubGlobal('HashChangeEvent', Event);
  });
  afterEach(() => vi.unstubAllGlobals());

  it('keeps a link that was clicked before a search that was being typed is set', () => {
    location.hash = '#/';
    const list = rendered('#/');
    location.hash = '#/session/s';
    list.set({ search: 'refund' });
    expect(location.hash).toBe('#/session/s');
  });

  it('keeps what another part of the view has set since it was rendered', () => {
    location.hash = '#/session/s?tab=state';
    const session = rendered('#/session/s?tab=state');
    session.set({ tab: 'changes' });
    session.set({ value: '/messages/1' });
    expect(new URLSearchParams(location.hash.split('?')[1]).get('tab')).toBe('changes');
    expect(location.hash).toBe('#/session/s?tab=changes&value=%2Fmessages%2F1');
  });

  it('removes what is set to nothing, and pushes on request', () => {
    location.hash = '#/?search=refund';
    rendered('#/?search=refund').set({ search: '' });
    expect(location.hash).toBe('#/');
    rendered('#/').set({ status: 'failed' }, 'push');
    expect(location.hash).toBe('#/?status=failed');
  });
});
