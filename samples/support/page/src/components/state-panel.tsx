import type { Preferences, SupportState } from '../../../agent/state.ts';
import { Folded } from '../../../../../ui/components/folded.tsx';
import { Json } from '../../../../../ui/components/json.tsx';

interface Props {
  /** The agent's knowledge: keys of the conversation and of the user. */
  state?: SupportState & { 'user:style'?: Preferences['style'] };
  /** All of the session's state. */
  raw?: unknown;
}

/** The agent's knowledge at this point of the conversation, with highlighted changes. */
export function StatePanel({ state, raw }: Props) {
  return (
    <section className="panel state" aria-labelledby="state">
      <h2 id="state">State</h2>
      {state ? (
        <dl>
          <Row name="customer" value={state.customer && `${state.customer.name}, ${state.customer.email}`} />
          <Row name="orderId" value={state.orderId} />
          <Row name="topic" value={state.topic} />
          <Row
            name="refunds"
            value={state.refunds.map(({ orderId, amount }) => `${orderId}: ${amount.toFixed(2)}`).join(', ')}
          />
          <Row name="turns" value={String(state.turns)} />
          <Row name="user:style" value={state['user:style']} />
        </dl>
      ) : (
        <p className="empty">What the agent learns is shown here.</p>
      )}
      {raw !== undefined && (
        <Folded className="raw" summary="Raw state">
          {() => <Json value={raw} />}
        </Folded>
      )}
    </section>
  );
}

function Row({ name, value }: { name: string; value?: string }) {
  return (
    <div className="row">
      <dt>{name}</dt>
      {/* A new key restarts the highlight when the value changes. */}
      <dd key={value} className={value ? 'set' : undefined}>
        {value || '–'}
      </dd>
    </div>
  );
}
