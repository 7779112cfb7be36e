import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';

interface Props<T> {
  label: string;
  items: readonly T[];
  rowHeight: number;
  keyOf: (item: T) => string;
  /** The link of a row. */
  hrefOf: (item: T) => string;
  isCurrent?: (item: T) => boolean;
  /** Called when the end of the list is near. */
  onEnd?: () => void;
  children: (item: T) => ReactNode;
}

const MARGIN_ROWS = 3;
const STEPS: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 10,
  PageUp: -10,
  Home: -Infinity,
  End: Infinity,
};

/** A list of any length that renders only the visible rows. Arrow keys move through it. */
export function VirtualList<T>({ label, items, rowHeight, keyOf, hrefOf, isCurrent, onEnd, children }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [focused, setFocused] = useState<number>();
  const first = Math.max(0, Math.floor(view.top / rowHeight) - MARGIN_ROWS);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + MARGIN_ROWS);

  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return;
    const observer = new ResizeObserver(() => setView(({ top }) => ({ top, height: current.clientHeight })));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);

  const isNearEnd = last >= items.length - MARGIN_ROWS;
  useEffect(() => {
    if (isNearEnd) onEnd?.();
  }, [isNearEnd, onEnd]);

  useEffect(() => {
    if (focused !== undefined) box.current?.querySelector<HTMLElement>(`[data-row="${focused}"]`)?.focus();
  }, [focused]);

  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    const from = Number((event.target as HTMLElement).dataset['row'] ?? Number.NaN);
    if (step === undefined || Number.isNaN(from)) return;
    event.preventDefault();
    const to = Math.min(items.length - 1, Math.max(0, from + step));
    const { current } = box;
    if (!current) return;
    const [top, bottom] = [to * rowHeight, (to + 1) * rowHeight];
    if (top < current.scrollTop) current.scrollTop = top;
    else if (bottom > current.scrollTop + current.clientHeight) current.scrollTop = bottom - current.clientHeight;
    setView({ top: current.scrollTop, height: current.clientHeight });
    setFocused(to);
  };

  return (
    <div
      ref={box}
      className="rows"
      role="list"
      aria-label={label}
      onKeyDown={onKeyDown}
      onScroll={({ currentTarget: { scrollTop, clientHeight } }) => setView({ top: scrollTop, height: clientHeight })}
    >
      <div style={{ height: items.length * rowHeight }}>
        {items.slice(first, last).map((item, offset) => (
          <div
            key={keyOf(item)}
            role="listitem"
            className="row"
            style={{ top: (first + offset) * rowHeight, height: rowHeight }}
          >
            <a
              href={hrefOf(item)}
              data-row={first + offset}
              aria-current={isCurrent?.(item) ? 'true' : undefined}
              onFocus={() => setFocused(undefined)}
            >
              {children(item)}
            </a>
          </div>
        ))}
      </div>
    </div>
  );
}
