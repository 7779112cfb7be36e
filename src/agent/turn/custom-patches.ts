import type { AgentStreamChunk, ClientTransform, SessionState } from 'genkit/beta';
import { diff } from '../../json/diff.ts';
import { shareJson } from '../../json/share.ts';
import { copyJson, jsonEqual } from '../../json/value.ts';
import { sharesState, visibleCustomOf } from '../../session/state/session-state.ts';
import { viewOf, type Session, type SessionView } from '../../session/session.ts';

export type CustomPatch = NonNullable<AgentStreamChunk['customPatch']>;

/**
 * What the caller must be told to keep up with the session's custom state, as the caller may see it: the whole of it first in each turn, then
 * what changed since it was told last. The work of each call is that of the custom state alone.
 */
export class CustomPatches<State> {
  readonly #session: Session<State>;
  readonly #transform: ClientTransform<State>['state'];
  #told: unknown;
  /** The custom state itself when the caller was told last, or when the turn began. */
  #seen: unknown;
  #whole = true;
  /** The copies that the transform gets, as long as the messages and artifacts they were made of are the session's. */
  #copied:
    | { of: SessionView<State>; messages?: SessionState['messages']; artifacts?: SessionState['artifacts'] }
    | undefined;

  constructor(session: Session<State>, transform: ClientTransform<State>['state']) {
    this.#session = session;
    this.#transform = transform;
  }

  /** The caller may know nothing, or something else: the next patch is the whole document. */
  restart(): void {
    this.#whole = true;
    this.#look();
  }

  /** The patch that is due now; empty when the caller sees no change. Throws what the transform throws. */
  next(): CustomPatch {
    const told = this.#told;
    const visible = this.#visible(told);
    const whole = this.#whole || visible === undefined;
    // Without a transform what the caller sees is the state itself: it is walked through once.
    if (this.#transform) this.#look();
    else this.#seen = visible;
    this.#told = visible;
    this.#whole = false;
    if (!whole) return diff(told, visible);
    return [{ op: 'replace', path: '', value: visible === undefined ? undefined : copyJson(visible) }];
  }

  /** As {@link next}, of a change that nobody announced, by others of what they share included; nothing when there is none. */
  rest(): CustomPatch {
    const mayBeOutdated = this.#whole && sharesState(this.#session);
    if (!mayBeOutdated && jsonEqual(visibleCustomOf(this.#session), this.#seen)) return [];
    return this.next();
  }

  #look(): void {
    const custom = visibleCustomOf(this.#session);
    this.#seen = custom === undefined ? undefined : shareJson(this.#seen, custom);
  }

  /** The custom state as the caller may see it now; nobody changes it. Shares with `told` what did not change. */
  #visible(told: unknown): unknown {
    const shown = visibleCustomOf(this.#session);
    const custom = this.#transform ? this.#transform(this.#stateFor(shown)).custom : shown;
    return custom === undefined ? undefined : shareJson(told, custom);
  }

  /**
   * The state for the transform, which may change what it gets. Messages and artifacts are many and a transform of the custom state seldom
   * looks at them, so they are copied when it does, and once for all updates in between which they stay the same.
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
