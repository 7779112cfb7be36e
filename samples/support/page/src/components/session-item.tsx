import { useEffect, useRef, useState } from 'react';
import type { SessionItem as Session } from '../../../server/api-types.ts';
import { EditText } from '../../../../../ui/components/edit-text.tsx';

interface Props {
  session: Session;
  current: boolean;
  onOpen: () => void;
  /** Optional: missing if the store keeps no titles. */
  onRename?: (title: string) => void;
  onRemove: (title: string) => void;
}

const WHEN = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function SessionItem({ session, current, onOpen, onRename, onRemove }: Props) {
  const [isRenaming, setIsRenaming] = useState(false);
  const open = useRef<HTMLButtonElement>(null);
  const wasRenaming = useRef(false);
  useEffect(() => {
    // After renaming, moves the focus back to this item.
    if (wasRenaming.current && !isRenaming) open.current?.focus();
    wasRenaming.current = isRenaming;
  }, [isRenaming]);
  const close = () => setIsRenaming(false);
  const { updatedAt, isWaiting } = session;
  const title = session.title || 'Untitled';
  if (isRenaming && onRename) {
    return (
      <li className="session">
        <EditText
          label="Title"
          text={title}
          onDone={(text) => {
            onRename(text);
            close();
          }}
          onCancel={close}
        />
      </li>
    );
  }
  return (
    <li className="session">
      <button type="button" ref={open} className="open" aria-current={current || undefined} onClick={onOpen}>
        <span className="title">{title}</span>
        <span className="about">
          <time dateTime={updatedAt}>{WHEN.format(new Date(updatedAt))}</time>
          {isWaiting && <span className="waiting">waits for approval</span>}
        </span>
      </button>
      <span className="tools">
        {onRename && (
          <button type="button" aria-label={`Rename “${title}”`} title="Rename" onClick={() => setIsRenaming(true)}>
            ✎
          </button>
        )}
        <button type="button" aria-label={`Delete “${title}”`} title="Delete" onClick={() => onRemove(title)}>
          ×
        </button>
      </span>
    </li>
  );
}
