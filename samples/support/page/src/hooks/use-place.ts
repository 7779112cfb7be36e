import { useCallback, useEffect, useState } from 'react';
import { currentPlace, writePlace, type Place } from '../logic/place.ts';

export type Go = (place: Place, how?: 'push' | 'replace') => void;

/** The place in the URL, and a function that goes to another place. */
export function usePlace(): [Place, Go] {
  const [place, setPlace] = useState(currentPlace);

  useEffect(() => {
    // The URL always contains the place, even if the page was opened without it.
    if (!location.hash) writePlace(currentPlace(), 'replace');
    const follow = () => setPlace(currentPlace());
    window.addEventListener('popstate', follow);
    return () => window.removeEventListener('popstate', follow);
  }, []);

  const go = useCallback<Go>((next, how = 'push') => {
    writePlace(next, how);
    setPlace(next);
  }, []);

  return [place, go];
}
