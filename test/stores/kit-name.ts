/** The title of a run of the conformance kit. */
export function nameOf(store: string, options: object, isEncrypted: boolean): string {
  const all = { ...options, ...(isEncrypted && { encryption: true }) };
  return Object.keys(all).length > 0 ? `options: ${store} ${JSON.stringify(all)}` : store;
}
