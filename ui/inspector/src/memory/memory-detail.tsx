import { useState, type ReactNode } from 'react';
import type { Memory, MemoryScopeId, MemorySource } from '../../../../src/inspector/api.ts';
import { factsOf, write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { Messages } from '../snapshot/conversation.tsx';
import { Change } from '../snapshot/value-history.tsx';
import { Confidence } from './memories.tsx';

/** The most sources and revisions that are shown. */
const SHOWN = 10;

/** A memory with its sources, its details and its revisions. */
export function MemoryDetail({ scope, onRemoved }: { scope: MemoryScopeId; onRemoved: () => void }) {
  const { info, place, tenant, href } = usePage();
  const { id } = place.query;
  const { data, error, again } = useRead('memory/show', id ? { scope, id, tenant } : undefined);
  if (!id) return <section className="memory-detail nothing">Choose a memory to see its sources.</section>;
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Loading…</p>;
  const { memory, revisions } = data;
  const remove = async () => {
    try {
      await write('memory/remove', { scope, id, confirm: id, tenant });
    } catch (failure) {
      // Removed meanwhile.
      if (factsOf(failure).status !== 'NOT_FOUND') throw failure;
    }
    onRemoved();
  };
  const details: (readonly [name: string, value: ReactNode])[] = [
    ['Confidence', `${Math.round(memory.confidence * 100)} %`],
    ['Importance', `${Math.round(memory.importance * 100)} %`],
    ['Kind', memory.kind === 'procedural' ? 'a procedure' : 'a fact'],
    ['Topics', memory.topics.join(', ') || '–'],
    ['Valid', `from ${time(memory.validFrom)}${memory.validTo ? ` to ${time(memory.validTo)}` : ''}`],
    ...(memory.supersededBy
      ? [
          [
            'Replaced by',
            <a key="by" className="id" href={href(['memory'], { ...place.query, id: memory.supersededBy })}>
              {memory.supersededBy}
            </a>,
          ] as const,
        ]
      : []),
    ['Last used', memory.lastUsedAt ? time(memory.lastUsedAt) : 'never'],
    ...(memory.expiresAt ? [['Expires', time(memory.expiresAt)] as const] : []),
    ['Id', <code key="id">{memory.id}</code>],
  ];
  return (
    <section className="memory-detail" aria-label="Memory">
      <header>
        <Confidence value={memory.confidence} />
        <h2>{memory.text}</h2>
        {!info.readOnly && (
          <Confirmed action="Remove memory" className="quiet" onYes={remove}>
            <p>“{memory.text}” is removed with all its revisions. This can’t be undone.</p>
          </Confirmed>
        )}
      </header>
      {memory.data !== undefined && <JsonTree value={memory.data} />}
      <h3>Sources</h3>
      <ul className="sources">
        {memory.sources.slice(0, SHOWN).map((source, index) => (
          <Source key={`${source.id} ${source.at}`} scope={scope} id={id} index={index} source={source} />
        ))}
      </ul>
      {memory.sources.length > SHOWN && <p className="empty">And {memory.sources.length - SHOWN} more.</p>}
      <h3>Details</h3>
      <dl className="fact-list">
        {details.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Revisions revisions={revisions} />
    </section>
  );
}

const TYPES: Record<MemorySource['type'], string> = {
  bootstrap: 'Imported',
  explicit: 'The user asked to remember it',
  implicit: 'Learned from a conversation',
  tool: 'Returned by a tool',
};

interface SourceProps {
  scope: MemoryScopeId;
  id: string;
  index: number;
  source: MemorySource;
}

function Source({ scope, id, index, source }: SourceProps) {
  const { tenant, href } = usePage();
  const [isOpen, setIsOpen] = useState(false);
  const { data, error, again } = useRead('memory/source', isOpen ? { scope, id, source: index, tenant } : undefined);
  return (
    <li>
      <p>“{source.statement}”</p>
      <small>
        {TYPES[source.type]} · {time(source.at)} · trust {Math.round(source.trust * 100)} % · source{' '}
        <code>{source.id}</code>
      </small>
      {source.from !== undefined && (
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? 'Hide the messages' : 'Show the messages'}
        </button>
      )}
      {error && <Failure facts={error} onRetry={again} />}
      {isOpen && data && (
        <div className="source-messages">
          {data.messages ? (
            <Messages messages={data.messages} offset={source.from} />
          ) : (
            <p className="empty">{data.reason}</p>
          )}
          {data.sessionId && (
            <a href={href(['session', data.sessionId], { snapshot: data.snapshotId })}>
              {data.messages ? 'Show them in their session' : 'Show the session'}
            </a>
          )}
        </div>
      )}
    </li>
  );
}

/** Members that are not shown as changes. */
const HIDDEN: ReadonlySet<string> = new Set(['revision', 'updatedAt', 'createdAt', 'scope', 'id', 'lastUsedAt']);

/** Names of members that are not words. */
const NAMES: Readonly<Record<string, string>> = {
  validFrom: 'valid from',
  validTo: 'valid to',
  supersededBy: 'replaced by',
  expiresAt: 'expires',
};

function Revisions({ revisions }: { revisions: readonly Memory[] }) {
  if (revisions.length < 2) return undefined;
  return (
    <>
      <h3>Revisions</h3>
      <ol className="revisions">
        {revisions
          .map((revision, index) => ({ revision, before: revisions[index - 1] }))
          .toReversed()
          .slice(0, SHOWN)
          .map(({ revision, before }) => (
            <li key={revision.revision}>
              <small>
                Revision {revision.revision} · {time(revision.updatedAt)}
              </small>
              {before ? (
                changedMembers(before, revision).map((name) => (
                  <p key={name}>
                    {NAMES[name] ?? name} <Change before={valueOf(before, name)} after={valueOf(revision, name)} />
                  </p>
                ))
              ) : (
                <p>{revision.text}</p>
              )}
            </li>
          ))}
      </ol>
    </>
  );
}

/** A member as people read it: of its sources only what they said. */
function valueOf(memory: Memory, name: string): unknown {
  return name === 'sources' ? memory.sources.map(({ statement }) => statement) : memory[name];
}

function changedMembers(before: Memory, after: Memory): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => !HIDDEN.has(name) && JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}
