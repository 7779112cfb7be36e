import { useCallback, useState } from 'react';
import type { InspectorError, Memory, MemoryScopeId, MemorySearchResult } from '../../../../src/inspector/api.ts';
import { factsOf, read } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Failure } from '../components/failure.tsx';
import { useDraft } from '../components/use-draft.ts';
import { VirtualList } from '../components/virtual-list.tsx';
import { time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { describeReport } from './search-report.ts';

type Found = MemorySearchResult['memories'][number];

interface Line {
  memory: Memory;
  found?: Found;
}

const PAGE = 100;

/** The memories of a scope: the valid ones, now or at an earlier time, or those that match a question. */
export function Memories({ scope }: { scope: MemoryScopeId }) {
  const { place, tenant, set, href } = usePage();
  const { asOf, query, all, id } = place.query;
  const list = useMemoryList(scope, tenant, asOf, all === 'yes', query !== undefined);
  const search = useRead('memory/search', query ? { scope, query, k: 50, asOf, tenant } : undefined);
  const lines: readonly Line[] = query
    ? (search.data?.memories ?? []).map((found) => ({ memory: found.memory, found }))
    : list.memories.map((memory) => ({ memory }));
  const error = query ? search.error : list.error;
  const isLoading = query ? search.isLoading : list.isLoading;
  const report = query ? search.data?.report : undefined;
  return (
    <>
      <SearchField />
      <AsOf />
      {!query && (
        <label className="all">
          <input type="checkbox" checked={all === 'yes'} onChange={() => set({ all: all === 'yes' ? '' : 'yes' })} />{' '}
          Also memories that are no longer valid
        </label>
      )}
      {error && <Failure facts={error} onRetry={query ? search.again : list.again} />}
      {report && <p className="empty">{describeReport(report)}</p>}
      {!isLoading && lines.length === 0 && !error && (
        <p className="empty">{query ? 'No memory matches.' : 'No memories.'}</p>
      )}
      <VirtualList
        label="Memories"
        items={lines}
        rowHeight={72}
        keyOf={({ memory }) => memory.id}
        hrefOf={({ memory }) => href(['memory'], { ...place.query, scope: JSON.stringify(scope), id: memory.id })}
        isCurrent={({ memory }) => memory.id === id}
        onEnd={list.more}
      >
        {(line) => <MemoryRow line={line} />}
      </VirtualList>
    </>
  );
}

function MemoryRow({ line: { memory, found } }: { line: Line }) {
  const { text, confidence, topics, updatedAt, validTo } = memory;
  const facts = found ? scoresOf(found) : [...topics, time(updatedAt)].join(' · ');
  return (
    <>
      <Confidence value={confidence} />
      <b data-ended={validTo !== undefined}>{text}</b>
      <small title={facts}>{facts}</small>
    </>
  );
}

function scoresOf({ score, parts: { lexical, semantic, ...others } }: Found): string {
  return Object.entries({ score, 'by words': lexical, 'by meaning': semantic, ...others })
    .flatMap(([name, value]) => (value === undefined ? [] : `${name} ${value.toFixed(2)}`))
    .join(' · ');
}

/** The confidence of a memory, as a ring. */
export function Confidence({ value }: { value: number }) {
  const percent = Math.round(value * 100);
  const round = 2 * Math.PI * 9;
  return (
    <svg className="confidence" viewBox="0 0 24 24" role="img">
      <title>{`Confidence ${percent} %`}</title>
      <circle cx="12" cy="12" r="9" />
      <circle cx="12" cy="12" r="9" className="sure" strokeDasharray={`${value * round} ${round}`} />
    </svg>
  );
}

function SearchField() {
  const { place, set } = usePage();
  const [draft, setDraft] = useDraft(place.query['query'] ?? '', (query) => set({ query }));
  return (
    <input
      type="search"
      aria-label="Search memories"
      placeholder="Search as an agent would"
      value={draft}
      onChange={(event) => setDraft(event.target.value)}
    />
  );
}

/** The last step of the slider: now. */
const STEPS = '200';
const WINDOW_MS = 90 * 86_400_000;

/** Chooses a time of the last 90 days, in steps of about half a day. */
function AsOf() {
  const { place, set } = usePage();
  const { asOf } = place.query;
  const [now] = useState(() => Date.now());
  const [draft, setDraft] = useDraft(asOf ? stepOf(asOf, now) : STEPS, (step) =>
    set({ asOf: step === STEPS ? '' : dateOf(step, now) }),
  );
  const shown = draft === STEPS ? 'now' : time(dateOf(draft, now));
  return (
    <label className="as-of">
      <span>As of {shown}</span>
      <input
        type="range"
        min={0}
        max={STEPS}
        value={draft}
        aria-label="As of"
        aria-valuetext={shown}
        onChange={(event) => setDraft(event.target.value)}
      />
    </label>
  );
}

function stepOf(asOf: string, now: number): string {
  return String(Math.round(Math.max(0, Math.min(1, 1 - (now - Date.parse(asOf)) / WINDOW_MS)) * Number(STEPS)));
}

function dateOf(step: string, now: number): string {
  return new Date(now - (1 - Number(step) / Number(STEPS)) * WINDOW_MS).toISOString();
}

interface MemoryList {
  memories: readonly Memory[];
  isLoading: boolean;
  error?: InspectorError;
  more: () => void;
  again: () => void;
}

/** The list of memories, loaded page by page. */
function useMemoryList(
  scope: MemoryScopeId,
  tenant: string | undefined,
  asOf: string | undefined,
  all: boolean,
  isOff: boolean,
): MemoryList {
  const first = useRead('memory/list', isOff ? undefined : { scope, tenant, asOf, all: all || undefined, limit: PAGE });
  const [later, setLater] = useState<{ of?: object; items: readonly Memory[]; cursor?: string }>({ items: [] });
  const [error, setError] = useState<InspectorError>();
  const page = first.data;
  const isSame = later.of === page;
  const cursor = isSame ? later.cursor : page?.nextCursor;
  const more = useCallback(() => {
    if (!page || cursor === undefined) return;
    const load = async () => {
      const next = await read('memory/list', { scope, tenant, asOf, all: all || undefined, limit: PAGE, cursor });
      setLater((before) => ({
        of: page,
        items: [...(before.of === page ? before.items : []), ...next.items],
        cursor: next.nextCursor,
      }));
    };
    load().catch((failure: unknown) => setError(factsOf(failure)));
  }, [page, cursor, scope, tenant, asOf, all]);
  return {
    memories: [...(page?.items ?? []), ...(isSame ? later.items : [])],
    isLoading: first.isLoading,
    error: first.error ?? error,
    more,
    again: first.again,
  };
}
