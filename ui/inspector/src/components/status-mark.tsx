import { MARK_NAMES, type Mark } from '../logic/status.ts';

/** The status by color and shape, and in words: next to the mark, or for screen readers. */
export function StatusMark({ mark, isNamed = false }: { mark: Mark; isNamed?: boolean }) {
  if (!isNamed)
    return <i className={`mark ${mark}`} role="img" aria-label={MARK_NAMES[mark]} title={MARK_NAMES[mark]} />;
  return (
    <span className="status">
      <i className={`mark ${mark}`} aria-hidden="true" />
      {MARK_NAMES[mark]}
    </span>
  );
}
