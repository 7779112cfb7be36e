import type { Artifact } from 'genkitx-agents/client';

/** Documents that the agent made. Nothing is shown while there are none. */
export function ArtifactsPanel({ artifacts }: { artifacts: readonly Artifact[] }) {
  if (artifacts.length === 0) return undefined;
  return (
    <section className="panel artifacts" aria-labelledby="artifacts">
      <h2 id="artifacts">
        Artifacts <span className="count">{artifacts.length}</span>
      </h2>
      {artifacts.map(({ name, parts }, index) => (
        <details key={name ?? index}>
          <summary>{name ?? 'Unnamed'}</summary>
          <pre tabIndex={0}>{parts.map((part) => part.text ?? '').join('')}</pre>
        </details>
      ))}
    </section>
  );
}
