import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { InspectorInfo } from '../../../src/inspector/api.ts';
import { pageOf } from '../../../ui/inspector/src/page.ts';

/** A view rendered for an address. */
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

  it('does not undo a clicked link with a search that was typed before', () => {
    location.hash = '#/';
    const list = rendered('#/');
    location.hash = '#/session/s';
    list.set({ search: 'refund' });
    expect(location.hash).toBe('#/session/s');
  });

  it('keeps values that another part of the view has set since the rendering', () => {
    location.hash = '#/session/s?tab=state';
    const session = rendered('#/session/s?tab=state');
    session.set({ tab: 'changes' });
    session.set({ value: '/messages/1' });
    expect(new URLSearchParams(location.hash.split('?')[1]).get('tab')).toBe('changes');
    expect(location.hash).toBe('#/session/s?tab=changes&value=%2Fmessages%2F1');
  });

  it('removes empty values, and adds to the history on request', () => {
    location.hash = '#/?search=refund';
    rendered('#/?search=refund').set({ search: '' });
    expect(location.hash).toBe('#/');
    rendered('#/').set({ status: 'failed' }, 'push');
    expect(location.hash).toBe('#/?status=failed');
  });
});
