import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent } from 'react';

interface Props {
  label: string;
  text: string;
  /** The label of the button of a long text. Default: a text of one line, without buttons. */
  action?: string;
  onDone: (text: string) => void;
  onCancel: () => void;
}

/** Edits a text. Enter keeps the change. Escape cancels it, and so does leaving the field of one line. */
export function EditText({ label, text, action, onDone, onCancel }: Props) {
  const [draft, setDraft] = useState(text);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const field = form.current?.querySelector<HTMLTextAreaElement | HTMLInputElement>('textarea, input');
    field?.focus();
    field?.setSelectionRange(action ? text.length : 0, text.length);
  }, [text, action]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (draft.trim() !== '') onDone(draft.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onCancel();
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) submit(event);
  };
  const Field = action ? 'textarea' : 'input';

  return (
    <form ref={form} className={action ? 'edit' : 'rename'} onSubmit={submit}>
      <Field
        aria-label={label}
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={onKeyDown}
        onBlur={action ? undefined : onCancel}
      />
      {action && (
        <p className="choices">
          <button type="submit" className="primary" disabled={draft.trim() === ''}>
            {action}
          </button>
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        </p>
      )}
    </form>
  );
}
