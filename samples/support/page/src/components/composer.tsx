import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent } from 'react';

interface Props {
  running: boolean;
  online: boolean;
  /** Answers whether the message was accepted; one that was not comes back into the field. */
  onSend: (text: string) => Promise<boolean>;
  onStop: () => void;
}

/** Enter sends, Shift+Enter begins a new line, Escape stops the reply. */
export function Composer({ running, online, onSend, onStop }: Props) {
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const canSend = online && !running && text.trim() !== '';

  useEffect(() => field.current?.focus(), []);

  const submit = async (event?: FormEvent) => {
    event?.preventDefault();
    if (!canSend) return;
    setText('');
    field.current?.focus();
    const accepted = await onSend(text.trim());
    if (!accepted) setText((typedSince) => typedSince || text);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && running) onStop();
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  };

  return (
    <form className="composer" onSubmit={(event) => void submit(event)}>
      <label htmlFor="message" className="unseen">
        Your message
      </label>
      <textarea
        id="message"
        ref={field}
        rows={1}
        value={text}
        placeholder="Ask about an order"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {/* The keys keep React from turning the one button into the other under the finger that is pressing it. */}
      {running ? (
        <button key="stop" type="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button key="send" type="submit" disabled={!canSend}>
          Send
        </button>
      )}
    </form>
  );
}
