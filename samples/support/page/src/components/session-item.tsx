import type { SessionList } from '../../../server/api-types.ts';

interface Props {
  session: SessionList['items'][number];
  current: boolean;
  disabled: boolean;
  onOpen: () => void;
  onRemove: () => void;
}

const WHEN = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function SessionItem({ session, current, disabled, onOpen, onRemove }: Props) {
  const { snapshotCount, leafCount, updatedAt } = session;
  const title = session.title || 'Untitled';
  const turns = snapshotCount === 1 ? '1 turn' : `${snapshotCount} turns`;
  return (
    <li className="session">
      <button type="button" className="open" aria-current={current || undefined} disabled={disabled} onClick={onOpen}>
        <span className="title">{title}</span>
        <span className="about">
          {leafCount > 1 ? `${turns}, ${leafCount} branches` : turns}
          <time dateTime={updatedAt}>{WHEN.format(new Date(updatedAt))}</time>
        </span>
      </button>
      <button
        type="button"
        className="remove"
        aria-label={`Delete “${title}”`}
        title="Delete"
        disabled={disabled}
        onClick={onRemove}
      >
        ×
      </button>
    </li>
  );
}
