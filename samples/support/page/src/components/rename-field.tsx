import { useEffect, useRef, useState, type FormEvent } from 'react';

interface Props {
  title: string;
  onDone: (title: string) => void;
  onClose: () => void;
}

/** A conversation's title, to be changed. Enter keeps it, Escape and leaving the field don't. */
export function RenameField({ title, onDone, onClose }: Props) {
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== '') onDone(text.trim());
    onClose();
  };
  return (
    <form className="rename" onSubmit={submit}>
      <input
        ref={field}
        aria-label="Title"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={onClose}
        onKeyDown={(event) => event.key === 'Escape' && onClose()}
      />
    </form>
  );
}
