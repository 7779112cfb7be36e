import type { AgentInit, AgentInput } from 'genkit/beta';
import { validateSchema, type ValidationErrorDetail } from 'genkit/schema';
import { assertId } from '../../snapshot/ids.ts';
import type { CallBody } from './read-body.ts';
import { badRequest } from '../answer/refusal.ts';
import type { Route } from './routes.ts';

type Ids = { snapshotId?: unknown; sessionId?: unknown };

/**
 * Checks the body against the schemas of the action, before anything runs.
 *
 * @throws Refusal 400 that names the member; GenkitError `INVALID_ARGUMENT` for an invalid id.
 */
export function validateBody({ kind, action }: Route, { data, init }: CallBody): void {
  const { inputSchema, initSchema } = action.__action;
  mustFit('data', data, inputSchema);
  if (kind === 'turn') {
    mustFit('init', init, initSchema);
    mustHaveIds(init as Ids);
    mustHaveContent(data as AgentInput, init as AgentInit);
    return;
  }
  mustHaveIds(data as Ids);
  const { snapshotId, sessionId } = data as Ids;
  if (kind === 'getSnapshot' && (snapshotId === undefined) === (sessionId === undefined)) {
    throw badRequest('data must have either a snapshotId or a sessionId.');
  }
}

/** An empty input runs a stopped turn again, so `init` has to name that turn. */
function mustHaveContent({ message, resume, detach }: AgentInput, { snapshotId, sessionId, state }: AgentInit): void {
  if (message || resume || detach || (snapshotId ?? sessionId ?? state) !== undefined) return;
  throw badRequest('data must have a message, a resume or detach; without them, init must name the turn to run again.');
}

function mustFit(member: string, value: unknown, schema: Route['action']['__action']['inputSchema']): void {
  const { errors } = schema ? validateSchema(value, { schema }) : { errors: [] };
  const fault = errors && deepest(errors);
  if (fault) {
    const path = fault.path === '(root)' ? member : `${member}.${fault.path}`;
    throw badRequest(`${path} ${fault.message}.`);
  }
}

/** A value that fits none of several schemas has an error for each. The error at the deepest path belongs to the intended one. */
function deepest(errors: readonly ValidationErrorDetail[]): ValidationErrorDetail | undefined {
  const depth = ({ path }: ValidationErrorDetail) => path.split('.').length;
  return errors.reduce<ValidationErrorDetail | undefined>(
    (found, error) => (found && depth(found) >= depth(error) ? found : error),
    undefined,
  );
}

function mustHaveIds(ids: Ids): void {
  for (const kind of ['snapshotId', 'sessionId'] as const) {
    if (ids[kind] !== undefined) {
      assertId(ids[kind], kind);
    }
  }
}
