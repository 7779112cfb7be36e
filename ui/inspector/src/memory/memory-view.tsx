import { useCallback, useMemo, useState } from 'react';
import type { MemoryScopeId } from '../../../../src/inspector/api.ts';
import { useRead } from '../api/use-read.ts';
import { Failure } from '../components/failure.tsx';
import { Heading } from '../components/heading.tsx';
import { TabList } from '../components/tab-list.tsx';
import { usePage } from '../page.ts';
import { DeadLetters } from './dead-letters.tsx';
import { Memories } from './memories.tsx';
import { MemoryDetail } from './memory-detail.tsx';
import { Quarantine } from './quarantine.tsx';
import { nameOfScope } from './scope-name.ts';

/** Scopes of one page of the list. */
const SCOPES = 100;

const TABS = [
  ['memories', 'Memories'],
  ['quarantine', 'Quarantine'],
  ['dead', 'Dead letters'],
] as const;

/** The memories, the quarantine and the dead jobs of one scope. */
export function MemoryView() {
  const { place, tenant, set } = usePage();
  const [cursor, setCursor] = useState<string>();
  const { data, error, again } = useRead('memory/scopes', { tenant, limit: SCOPES, cursor });
  const wanted = place.query['scope'];
  const scopes = data?.items ?? [];
  const chosen = useMemo(() => scopeFrom(wanted), [wanted]);
  const tab = place.query['tab'] ?? 'memories';
  const isOfAll = tab === 'dead' && !chosen;
  // Changes when a memory was removed, so that the list is read again.
  const [round, setRound] = useState(0);
  const key = JSON.stringify(chosen ?? scopes[0]);
  // The same object while the list of scopes is read again.
  const scope = useMemo(() => scopeFrom(key), [key]);
  const choose = useCallback((value: string) => set({ scope: value, id: '', asOf: '', query: '' }), [set]);

  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Loading…</p>;
  if (!scope)
    return (
      <div className="nothing">
        <p>No memories yet.</p>
      </div>
    );
  return (
    <div className="memory">
      <Heading className="unseen">Memory</Heading>
      <section className="memory-list" aria-label="Memories of a scope">
        <p className="scope">
          <select aria-label="Scope" value={isOfAll ? '' : key} onChange={(event) => choose(event.target.value)}>
            {tab === 'dead' && <option value="">All scopes</option>}
            {!scopes.some((one) => JSON.stringify(one) === key) && <option value={key}>{nameOfScope(scope)}</option>}
            {scopes.map((one) => (
              <option key={JSON.stringify(one)} value={JSON.stringify(one)}>
                {nameOfScope(one)}
              </option>
            ))}
          </select>
          {data.nextCursor && (
            <button type="button" onClick={() => setCursor(data.nextCursor)}>
              More scopes
            </button>
          )}
        </p>
        <TabList tabs={TABS} current={tab} onChoose={(id) => set({ tab: id, id: '' })} />
        <div className="memory-panel" role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
          {tab === 'memories' && <Memories key={`${key} ${round}`} scope={scope} />}
          {tab === 'quarantine' && <Quarantine key={key} scope={scope} />}
          {tab === 'dead' && <DeadLetters key={wanted} scope={chosen} />}
        </div>
      </section>
      {tab === 'memories' && (
        <MemoryDetail
          key={`${key} ${place.query['id']}`}
          scope={scope}
          onRemoved={() => {
            set({ id: '' });
            setRound(round + 1);
          }}
        />
      )}
    </div>
  );
}

function scopeFrom(text: string | undefined): MemoryScopeId | undefined {
  try {
    return JSON.parse(text ?? '') as MemoryScopeId;
  } catch {
    return undefined;
  }
}
