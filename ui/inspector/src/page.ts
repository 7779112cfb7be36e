import { createContext, useContext, useSyncExternalStore } from 'react';
import type { InspectorInfo } from '../../../src/inspector/api.ts';
import { hrefOf, readPlace, type Place } from './logic/place.ts';

/** The context of all parts of the page. */
export interface Page {
  info: InspectorInfo;
  place: Place;
  /** The tenant whose data the page shows. */
  tenant: string | undefined;
  /** An address of the page, for the same tenant. */
  href: (path: readonly string[], query?: Readonly<Record<string, string | undefined>>) => string;
  /** Changes values of the query. Does nothing if the path has changed meanwhile, because a link was clicked. */
  set: (query: Readonly<Record<string, string | undefined>>, how?: 'push' | 'replace') => void;
}

export const PageContext = createContext<Page | undefined>(undefined);

export const PageProvider = PageContext.Provider;

export function usePage(): Page {
  const page = useContext(PageContext);
  if (!page) throw new Error('usePage needs a PageProvider.');
  return page;
}

/** The part of the address after the `#`. */
export function useHash(): string {
  return useSyncExternalStore(
    (notify) => {
      window.addEventListener('hashchange', notify);
      return () => window.removeEventListener('hashchange', notify);
    },
    () => location.hash,
  );
}

export function pageOf(info: InspectorInfo, hash: string): Page {
  const place = readPlace(hash);
  const tenant = place.query['tenant'];
  return {
    info,
    place,
    tenant,
    href: (path, query = {}) => hrefOf(path, { tenant, ...query }),
    set: (query, how = 'replace') => {
      const now = readPlace(location.hash);
      if (hrefOf(now.path) !== hrefOf(place.path)) return;
      const next = hrefOf(now.path, { ...now.query, ...query });
      if (next === location.hash) return;
      if (how === 'push') location.hash = next;
      else {
        history.replaceState(history.state, '', next);
        window.dispatchEvent(new HashChangeEvent('hashchange'));
      }
    },
  };
}
