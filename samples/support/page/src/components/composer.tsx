import { useEffect, type FormEvent, type KeyboardEvent } from 'react';
import { useDraft } from '../hooks/use-draft.ts';

interface Props {
  /** Whether a reply is streaming, so that it can be stopped. */
  isStreaming: boolean;
  canSend: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
}

const FIELD_ID = 'message';

/** For the case that the focused element disappears. */
export function focusComposer(): void {
  document.getElementById(FIELD_ID)?.focus();
}

/** Enter sends, Shift+Enter begins a new line, Escape stops the reply. */
export function Composer({ isStreaming, canSend, onSend, onStop }: Props) {
  const [text, setText] = useDraft();
  const isReady = canSend && text.trim() !== '';

  useEffect(focusComposer, []);

  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (!isReady) return;
    setText('');
    focusComposer();
    onSend(text.trim());
  };
  const stop = () => {
    focusComposer();
    onStop();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && isStreaming) onStop();
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };

  return (
    <form className="composer" onSubmit={submit}>
      <label htmlFor={FIELD_ID} className="unseen">
        Your message
      </label>
      <textarea
        id={FIELD_ID}
        rows={1}
        value={text}
        placeholder="Ask about an order"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {/* With different keys, React does not reuse the pressed button as the other button. */}
      {isStreaming ? (
        <button key="stop" type="button" onClick={stop}>
          Stop
        </button>
      ) : (
        <button key="send" type="submit" className="primary" disabled={!isReady}>
          Send
        </button>
      )}
    </form>
  );
}
