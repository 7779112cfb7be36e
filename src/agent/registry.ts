import { getContext, type ActionContext } from '@genkit-ai/core';
import type { Registry } from 'genkit/registry';
import { invalidArgument } from '../errors.ts';
import type { GenkitOrRegistry } from './types.ts';

/**
 * The registry of a `Genkit` instance, or the given registry.
 *
 * @throws `INVALID_ARGUMENT` for anything else.
 */
export function registryOf(ai: GenkitOrRegistry): Registry {
  const { registry = ai } = (ai ?? {}) as { registry?: unknown };
  if (isRegistry(registry)) return registry;
  throw invalidArgument('The argument is neither a Genkit instance nor a registry. Pass the result of genkit().');
}

function isRegistry(value: unknown): value is Registry {
  return typeof (value as Partial<Registry> | null | undefined)?.lookupAction === 'function';
}

/** The context that an action called from here gets: the registry's, overridden by the given or the ambient one. */
export function contextFor(registry: Registry, given: ActionContext | undefined): ActionContext | undefined {
  const own = given ?? getContext();
  return registry.context || own ? { ...registry.context, ...own } : undefined;
}
