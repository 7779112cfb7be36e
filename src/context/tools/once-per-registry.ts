import type { Registry } from 'genkit/registry';

/** Returns a function that defines a tool once for each registry, because Genkit warns of a name that is defined twice. */
export function oncePerRegistry<T>(define: (registry: Registry) => T): (ai: { readonly registry: Registry }) => T {
  const defined = new WeakMap<Registry, T>();
  return ({ registry }) => {
    const tool = defined.get(registry) ?? define(registry);
    defined.set(registry, tool);
    return tool;
  };
}
