import type { Artifact } from 'genkitx-agents/client';
import { DownloadLink } from '../../../../../ui/components/download-link.tsx';

/** The documents that the agent made. Hidden if there are none. */
export function ArtifactsPanel({ artifacts }: { artifacts: readonly Artifact[] }) {
  if (artifacts.length === 0) return undefined;
  return (
    <section className="panel artifacts" aria-labelledby="artifacts">
      <h2 id="artifacts">
        Artifacts <span className="count">{artifacts.length}</span>
      </h2>
      {artifacts.map(({ name = 'Unnamed', parts }, index) => {
        const text = parts.map((part) => part.text ?? '').join('');
        return (
          <div key={name + index} className="artifact">
            <details>
              <summary>{name}</summary>
              <pre tabIndex={0}>{text}</pre>
            </details>
            <DownloadLink name={name} text={text} />
          </div>
        );
      })}
    </section>
  );
}
