import type { AgentStreamChunk, ClientTransform, SessionState } from 'genkit/beta';
import { diff } from '../../json/patch/diff.ts';
import { shareJson } from '../../json/share.ts';
import { copyJson, jsonEqual } from '../../json/value.ts';
import { sharesState, visibleCustomOf } from '../../session/state/session-state.ts';
import { viewOf, type Session, type SessionView } from '../../session/session.ts';

export type CustomPatch = NonNullable<AgentStreamChunk['customPatch']>;

/**
 * The patches that keep the caller's view of the session's custom state current: in each turn the whole state first, then the changes since
 * the last patch. The cost of each call depends on the custom state alone.
 */
export class CustomPatches<State> {
  readonly #session: Session<State>;
  readonly #transform: ClientTransform<State>['state'];
  #sent: unknown;
  /** The custom state at the last patch, or when the turn began. */
  #seen: unknown;
  #isRestart = true;
  /** Copies for the transform, valid while the session's messages and artifacts are the ones they were made of. */
  #copied:
    | { of: SessionView<State>; messages?: SessionState['messages']; artifacts?: SessionState['artifacts'] }
    | undefined;

  constructor(session: Session<State>, transform: ClientTransform<State>['state']) {
    this.#session = session;
    this.#transform = transform;
  }

  /** Makes the next patch the whole document, because the caller's state is unknown. */
  restart(): void {
    this.#isRestart = true;
    this.#remember();
  }

  /** The patch that is due now; empty when the caller sees no change. Throws the transform's errors. */
  next(): CustomPatch {
    const sent = this.#sent;
    const visible = this.#visible(sent);
    const isWhole = this.#isRestart || visible === undefined;
    // Without a transform the caller sees the state itself, and one walk through it is enough.
    if (this.#transform) this.#remember();
    else this.#seen = visible;
    this.#sent = visible;
    this.#isRestart = false;
    if (!isWhole) return diff(sent, visible);
    return [{ op: 'replace', path: '', value: visible === undefined ? undefined : copyJson(visible) }];
  }

  /** Same as {@link next} for changes that were not announced, including those of shared scopes; empty when there are none. */
  rest(): CustomPatch {
    const mayBeOutdated = this.#isRestart && sharesState(this.#session);
    if (!mayBeOutdated && jsonEqual(visibleCustomOf(this.#session), this.#seen)) return [];
    return this.next();
  }

  #remember(): void {
    const custom = visibleCustomOf(this.#session);
    this.#seen = custom === undefined ? undefined : shareJson(this.#seen, custom);
  }

  /** The custom state as the caller may see it now, immutable. Unchanged parts are shared with `sent`. */
  #visible(sent: unknown): unknown {
    const shown = visibleCustomOf(this.#session);
    const custom = this.#transform ? this.#transform(this.#stateFor(shown)).custom : shown;
    return custom === undefined ? undefined : shareJson(sent, custom);
  }

  /**
   * The state for the transform, which may change its argument. A transform of the custom state seldom reads the many messages and artifacts,
   * so they are copied on first access, once for all updates in which they stay the same.
   */
  #stateFor(custom: unknown): SessionState<State> {
    const view = viewOf(this.#session);
    const known = this.#copied;
    const copied =
      known && known.of.messages === view.messages && known.of.artifacts === view.artifacts ? known : { of: view };
    this.#copied = copied;
    return {
      sessionId: view.sessionId,
      custom: custom === undefined ? undefined : (copyJson(custom) as State),
      get messages() {
        return (copied.messages ??= copyJson([...view.messages]));
      },
      get artifacts() {
        return (copied.artifacts ??= copyJson([...view.artifacts]));
      },
    };
  }
}
