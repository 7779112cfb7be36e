import { useState, type FormEvent } from 'react';
import { hrefOf } from '../logic/place.ts';
import { usePage } from '../page.ts';

/** Links to the views, the tenant, and the name of the store whose data is shown. */
export function TopBar() {
  const { info, place, href } = usePage();
  const [view] = place.path;
  const links = [
    ['sessions', 'Sessions', view === 'sessions' || view === '' || view === 'session'],
    ['runs', 'Runs', view === 'runs'],
    ...(info.memoryStore !== undefined ? [['memory', 'Memory', view === 'memory'] as const] : []),
  ] as const;
  return (
    <header className="top">
      <nav aria-label="Views">
        {links.map(([path, name, isHere]) => (
          <a key={path} href={href([path])} aria-current={isHere ? 'page' : undefined}>
            {name}
          </a>
        ))}
      </nav>
      {info.hasTenants && <TenantField />}
      {info.readOnly && <span className="badge">Read-only</span>}
      <span className="store" title={`genkitx-agents ${info.version}`}>
        {(view === 'memory' && info.memoryStore) || info.store}
      </span>
    </header>
  );
}

function TenantField() {
  const { tenant = '' } = usePage();
  // The typed text, until it is submitted or the field is left. Otherwise the field shows the page's tenant.
  const [typed, setTyped] = useState<string>();
  const choose = (event: FormEvent) => {
    event.preventDefault();
    if (typed !== undefined) location.hash = hrefOf(['sessions'], { tenant: typed.trim() });
    setTyped(undefined);
  };
  return (
    <form className="tenant" onSubmit={choose}>
      <input
        aria-label="Tenant"
        placeholder="Tenant"
        value={typed ?? tenant}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={() => setTyped(undefined)}
      />
    </form>
  );
}
