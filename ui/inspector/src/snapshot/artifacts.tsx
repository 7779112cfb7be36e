import type { Artifact } from '../../../../src/inspector/api.ts';
import { DownloadLink } from '../../../components/download-link.tsx';
import { Folded } from '../../../components/folded.tsx';
import { Reply } from '../../../components/reply.tsx';
import { JsonTree } from '../components/json-tree.tsx';

type Part = Artifact['parts'][number];

/** Images that can't carry a program. Everything else is named, and not loaded. */
const IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/;

export function Artifacts({ artifacts }: { artifacts: readonly Artifact[] }) {
  if (artifacts.length === 0) return <p className="empty">The session has no artifacts.</p>;
  return artifacts.map((artifact, index) => (
    <article key={index} className="artifact">
      <h3>{artifact.name ?? `Artifact ${index + 1}`}</h3>
      {artifact.parts.map((part, position) => (
        <ArtifactPart key={position} part={part} name={artifact.name ?? `artifact-${index + 1}`} />
      ))}
      {artifact.metadata && <Folded summary="Metadata">{() => <JsonTree value={artifact.metadata} />}</Folded>}
    </article>
  ));
}

/** Markdown as it is meant, data as a tree, images as images. */
function ArtifactPart({ part, name }: { part: Part; name: string }) {
  const { text, media, data } = part;
  if (text !== undefined)
    return (
      <>
        {/\.(txt|csv|json|ya?ml|html?|xml|svg|[jt]sx?|py|sql|sh)$/i.test(name) ? (
          <pre tabIndex={0}>{text}</pre>
        ) : (
          <Reply text={text} />
        )}
        <DownloadLink name={name} text={text} />
      </>
    );
  if (media && IMAGE.test(media.url)) return <img src={media.url} alt={name} />;
  if (media)
    return (
      <p className="empty">
        {media.contentType ?? 'Media'}: <code>{media.url.slice(0, 200)}</code>
      </p>
    );
  return <JsonTree value={data ?? part} />;
}
