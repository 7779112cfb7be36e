import { useCallback, useEffect, useState } from 'react';
import { currentPlace, writePlace, type Place } from '../logic/place.ts';

export type Go = (place: Place, how?: 'push' | 'replace') => void;

/** The place that the address names, and the way to another. */
export function usePlace(): [Place, Go] {
  const [place, setPlace] = useState(currentPlace);

  useEffect(() => {
    // The address always says where the page is, also when it was opened without saying.
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
