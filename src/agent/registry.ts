import { getContext, type ActionContext } from '@genkit-ai/core';
import type { Registry } from 'genkit/registry';
import type { GenkitOrRegistry } from './types.ts';

/** The registry of a `Genkit` instance, or the given registry. */
export function registryOf(ai: GenkitOrRegistry): Registry {
  return 'registry' in ai ? ai.registry : ai;
}

/** The context that an action called from here gets: the registry's, overridden by the given or the ambient one. */
export function contextFor(registry: Registry, given: ActionContext | undefined): ActionContext | undefined {
  const own = given ?? getContext();
  return registry.context || own ? { ...registry.context, ...own } : undefined;
}
