import { useState } from 'react';
import { count, counted, jsonLine } from '../logic/words.ts';

interface Props {
  value: unknown;
  /** RFC 6901 pointer of the value in the shown document. Default: the root. */
  path?: string;
  /** Called when a value is chosen. Default: values can't be chosen. */
  onChoose?: (path: string) => void;
  chosen?: string;
  depth?: number;
}

/** Members that are shown at first. */
const PAGE = 25;
/** Characters of a text that are shown at first. */
const LONG = 300;

/** A JSON value as a tree whose branches open. Large values are shown in pages. */
export function JsonTree({ value, path = '', onChoose, chosen, depth = 0 }: Props) {
  const [shown, setShown] = useState(PAGE);
  if (!isBranch(value)) return <Leaf value={value} />;
  const members = Object.entries(value);
  if (members.length === 0) return <code className="leaf">{Array.isArray(value) ? '[]' : '{}'}</code>;
  return (
    <ul className="json-tree">
      {members.slice(0, shown).map(([key, member]) => (
        <Member
          key={key}
          name={key}
          value={member}
          path={`${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`}
          onChoose={onChoose}
          chosen={chosen}
          depth={depth}
        />
      ))}
      {members.length > shown && (
        <li>
          <button type="button" className="quiet" onClick={() => setShown(shown + 4 * PAGE)}>
            {count(members.length - shown)} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Member({
  name,
  value,
  path,
  onChoose,
  chosen,
  depth = 0,
}: Required<Pick<Props, 'path'>> & Props & { name: string }) {
  const size = isBranch(value) ? Object.keys(value).length : 0;
  const isChosenBelow = chosen?.startsWith(`${path}/`) ?? false;
  const [isOpen, setIsOpen] = useState((depth < 1 && size <= 8) || isChosenBelow);
  const key = onChoose ? (
    <button
      type="button"
      className="key"
      aria-pressed={chosen === path}
      title="Which turns changed it?"
      onClick={() => onChoose(path)}
    >
      {name}
    </button>
  ) : (
    <span className="key">{name}</span>
  );
  if (size === 0)
    return (
      <li>
        {key} <Leaf value={value} />
      </li>
    );
  return (
    <li>
      <button
        type="button"
        className="fold"
        aria-expanded={isOpen}
        aria-label={name}
        onClick={() => setIsOpen(!isOpen)}
      >
        {isOpen ? '▾' : '▸'}
      </button>
      {key}{' '}
      {!isOpen && (
        <span className="peek">
          {Array.isArray(value) ? counted(size, 'item') : ''} {jsonLine(value, 80)}
        </span>
      )}
      {isOpen && <JsonTree value={value} path={path} onChoose={onChoose} chosen={chosen} depth={depth + 1} />}
    </li>
  );
}

function Leaf({ value }: { value: unknown }) {
  const [isWhole, setIsWhole] = useState(false);
  const text = JSON.stringify(value) ?? 'undefined';
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  if (text.length <= LONG || isWhole) return <code className={`leaf ${type}`}>{text}</code>;
  return (
    <>
      <code className={`leaf ${type}`}>{text.slice(0, LONG)}…</code>{' '}
      <button type="button" className="quiet" onClick={() => setIsWhole(true)}>
        all {count(text.length)} characters
      </button>
    </>
  );
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
