import { useEffect, useState } from 'react';

const KEY = 'support.draft';

/** The typed text that is not sent yet. It survives a reload of the page. */
export function useDraft(): [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(KEY) ?? '');
  useEffect(() => sessionStorage.setItem(KEY, text), [text]);
  return [text, setText];
}
