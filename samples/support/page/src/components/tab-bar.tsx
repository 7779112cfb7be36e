const TABS = { chat: 'Chat', tree: 'Branches', sessions: 'Conversations' };

export type Tab = keyof typeof TABS;

/** On a narrow screen one part of the page is shown at a time. */
export function TabBar({ tab, onChange }: { tab: Tab; onChange: (tab: Tab) => void }) {
  return (
    <nav className="tabs" aria-label="Parts of the page">
      {(Object.keys(TABS) as Tab[]).map((name) => (
        <button key={name} type="button" aria-pressed={name === tab} onClick={() => onChange(name)}>
          {TABS[name]}
        </button>
      ))}
    </nav>
  );
}
