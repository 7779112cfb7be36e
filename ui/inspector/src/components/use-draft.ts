import { useEffect, useState } from 'react';

const PAUSE_MS = 250;

/**
 * What a field shows: what the address says, and what is typed until the address says that. A link that changes the address changes the field.
 *
 * @param said What the address says.
 * @param say Called after a pause, without spaces at both ends.
 */
export function useDraft(said: string, say: (text: string) => void): [draft: string, type: (text: string) => void] {
  const [typed, setTyped] = useState({ text: said, said });
  const draft = typed.said === said || typed.text.trim() === said ? typed.text : said;
  if (typed.said !== said) setTyped({ text: draft, said });
  const next = draft.trim();
  useEffect(() => {
    if (next === said) return;
    const timer = setTimeout(() => say(next), PAUSE_MS);
    return () => clearTimeout(timer);
    // Not `say`, which is another function in each rendering: the pause would begin anew.
  }, [next, said]);
  return [draft, (text) => setTyped({ text, said })];
}
