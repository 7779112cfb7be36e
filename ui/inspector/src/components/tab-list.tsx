import { useEffect, useRef, type KeyboardEvent } from 'react';

interface TabListProps {
  tabs: readonly (readonly [id: string, name: string])[];
  current: string;
  onChoose: (id: string) => void;
}

/** Tabs. Arrow keys select the next one. */
export function TabList({ tabs, current, onChoose }: TabListProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector(`#tab-${current}`)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  const onKeyDown = ({ key }: KeyboardEvent) => {
    const side = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0;
    const next = tabs[tabs.findIndex(([id]) => id === current) + side]?.[0];
    if (side === 0 || next === undefined) return;
    onChoose(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" ref={list} onKeyDown={onKeyDown}>
      {tabs.map(([id, name]) => (
        <button
          key={id}
          type="button"
          role="tab"
          id={`tab-${id}`}
          aria-selected={id === current}
          aria-controls="panel"
          tabIndex={id === current ? 0 : -1}
          onClick={() => onChoose(id)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
