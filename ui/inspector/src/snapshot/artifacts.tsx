import { useState } from 'react';
import type { Artifact } from '../../../../src/inspector/api.ts';
import { DownloadLink } from '../../../components/download-link.tsx';
import { Folded } from '../../../components/folded.tsx';
import { Reply } from '../../../components/reply.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { counted } from '../logic/words.ts';

type Part = Artifact['parts'][number];

/** Artifacts that are shown at first, and characters of the text of each. */
const SHOWN = 3;
const MOST_TEXT = 1000;

/** Images that can't contain a script. Other media are named, but not loaded. */
const IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/;

export function Artifacts({ artifacts }: { artifacts: readonly Artifact[] }) {
  const [shown, setShown] = useState(SHOWN);
  if (artifacts.length === 0) return <p className="empty">The session has no artifacts.</p>;
  return (
    <>
      {artifacts.slice(0, shown).map((artifact, index) => (
        <article key={index} className="artifact">
          <h3>{artifact.name ?? `Artifact ${index + 1}`}</h3>
          {artifact.parts.map((part, position) => (
            <ArtifactPart key={position} part={part} name={artifact.name ?? `artifact-${index + 1}`} />
          ))}
          {artifact.metadata && <Folded summary="Metadata">{() => <JsonTree value={artifact.metadata} />}</Folded>}
        </article>
      ))}
      {artifacts.length > shown && (
        <button type="button" className="quiet" onClick={() => setShown(shown + SHOWN)}>
          {counted(artifacts.length - shown, 'more artifact')}
        </button>
      )}
    </>
  );
}

/** Shows Markdown formatted, data as a tree, images as images. */
function ArtifactPart({ part, name }: { part: Part; name: string }) {
  const { text, media, data } = part;
  if (text !== undefined) return <ArtifactText text={text} name={name} />;
  if (media && IMAGE.test(media.url)) return <img src={media.url} alt={name} />;
  if (media)
    return (
      <p className="empty">
        {media.contentType ?? 'Media'}: <code>{media.url.slice(0, 200)}</code>
      </p>
    );
  return <JsonTree value={data ?? part} />;
}

function ArtifactText({ text, name }: { text: string; name: string }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCut = !isWhole && text.length > MOST_TEXT;
  const shown = isCut ? text.slice(0, MOST_TEXT) : text;
  return (
    <>
      {/\.(txt|csv|json|ya?ml|html?|xml|svg|[jt]sx?|py|sql|sh)$/i.test(name) ? (
        <pre tabIndex={0}>{shown}</pre>
      ) : (
        <Reply text={shown} />
      )}
      {isCut && (
        <button type="button" className="quiet" onClick={() => setIsWhole(true)}>
          Show the whole text
        </button>
      )}{' '}
      <DownloadLink name={name} text={text} />
    </>
  );
}
