import { useState } from 'react';

/** Copies a text to the clipboard. Without a secure connection a page has no clipboard. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setIsCopied] = useState(false);
  if (!navigator.clipboard) return undefined;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
  };
  return (
    <button
      type="button"
      className="quiet"
      aria-label={label}
      onClick={() => void copy()}
      onBlur={() => setIsCopied(false)}
    >
      <span aria-live="polite">{isCopied ? 'Copied' : 'Copy'}</span>
    </button>
  );
}
