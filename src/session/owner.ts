import type { ActionContext } from 'genkit';

/** The owner of a session. */
export interface SessionOwner {
  /** The app, by any id; its sessions share the `app:` keys. */
  readonly appName: string;
  /** The user of that app, by any id; their sessions share the `user:` keys. */
  readonly userId: string;
}

/**
 * The user id that the server has verified, where Genkit's context providers put it. Returned unchecked: the agent and the scopes of a memory
 * refuse an id that is not a valid string, because a session without a user is open to all callers.
 */
export function verifiedUser({ auth }: ActionContext): string | undefined {
  return (auth?.['uid'] as string | null | undefined) ?? undefined;
}

/** Key under which a context carries the user it runs as. A registered symbol, because the package's other copy in the process must know it too. */
const RUN_AS = Symbol.for('genkitx-agents.run-as');

interface RunAsContext extends ActionContext {
  readonly [RUN_AS]?: {
    /** The user that the context itself names. */
    readonly named: unknown;
    /** The user that the run acts as. */
    readonly userId: string | undefined;
  };
}

/** Returns a context that runs as a user, for agents and memories. Object spread copies the symbol, JSON omits it. */
export function contextAs(
  context: ActionContext | undefined,
  named: unknown,
  userId: string | undefined,
): ActionContext {
  const runAs: RunAsContext = { ...context, [RUN_AS]: { named, userId } };
  return runAs;
}

/**
 * Returns the user that a call runs as, unchecked.
 *
 * @param named The user that the context names. Returned, unless the runtime runs the call as another user.
 */
export function userOf(context: ActionContext | undefined, named: unknown): unknown {
  const { [RUN_AS]: runAs }: RunAsContext = context ?? {};
  return runAs && runAs.named === named ? runAs.userId : named;
}
