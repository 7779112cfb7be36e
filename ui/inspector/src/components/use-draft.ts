import { useEffect, useState } from 'react';

const PAUSE_MS = 250;

/**
 * The text of a field whose value is in the address. Typed text becomes the value after a pause. A link
 * that changes the value also changes the text.
 *
 * @param onChange Called with the new value, without spaces at both ends.
 */
export function useDraft(
  value: string,
  onChange: (value: string) => void,
): [draft: string, setDraft: (draft: string) => void] {
  const [typed, setTyped] = useState({ text: value, over: value });
  const draft = typed.over === value || typed.text.trim() === value ? typed.text : value;
  if (typed.over !== value) setTyped({ text: draft, over: value });
  const next = draft.trim();
  useEffect(() => {
    if (next === value) return;
    const timer = setTimeout(() => onChange(next), PAUSE_MS);
    return () => clearTimeout(timer);
    // Not `onChange`, which is a new function in each rendering: the pause would restart.
  }, [next, value]);
  return [draft, (text) => setTyped({ text, over: value })];
}
