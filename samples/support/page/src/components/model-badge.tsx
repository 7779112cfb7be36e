import type { ServerHello } from '../../../server/api-types.ts';

/** Shows the model, and clearly marks the offline model, which is not a language model. */
export function ModelBadge({ model: { kind, label, note } }: Pick<ServerHello, 'model'>) {
  return (
    <span className="badge" data-kind={kind} title={note}>
      {kind === 'offline' ? 'Offline model' : label}
      {kind === 'offline' && <span className="wide">: rules, no language model</span>}
    </span>
  );
}
