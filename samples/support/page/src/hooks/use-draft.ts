import { useEffect, useState } from 'react';

const KEY = 'support.draft';

/** What is typed and not sent: it stays when the page is loaded again. */
export function useDraft(): [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(KEY) ?? '');
  useEffect(() => sessionStorage.setItem(KEY, text), [text]);
  return [text, setText];
}
