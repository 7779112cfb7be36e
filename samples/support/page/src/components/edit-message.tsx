import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent } from 'react';

interface Props {
  text: string;
  onCancel: () => void;
  onDone: (text: string) => void;
}

/** A message that was sent, to be said differently. Enter sends it as a new branch, Escape leaves it as it was. */
export function EditMessage({ text, onCancel, onDone }: Props) {
  const [draft, setDraft] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, [text]);

  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (draft.trim() !== '') onDone(draft.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onCancel();
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };

  return (
    <form className="edit" onSubmit={submit}>
      <textarea
        ref={field}
        aria-label="Edited message"
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <p className="choices">
        <button type="submit" className="primary" disabled={draft.trim() === ''}>
          Send as a branch
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </p>
    </form>
  );
}
