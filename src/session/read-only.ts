/**
 * Makes views of JSON values through which nothing can be changed, however deep: an attempt throws what `refusal` makes. Unlike a frozen copy a
 * view can say what to do instead. It costs nothing until it is looked into; of one object there is one view.
 */
export function readOnlyViews(refusal: (key?: string) => Error): <T>(value: T) => T {
  const views = new WeakMap<object, object>();
  const refuse = (_target: object, key?: string | symbol): never => {
    throw refusal(typeof key === 'string' ? key : undefined);
  };
  const viewOf = (member: unknown): unknown => {
    if (typeof member !== 'object' || member === null) return member;
    const known = views.get(member);
    if (known) return known;
    const view = new Proxy(member, handler);
    views.set(member, view);
    return view;
  };
  const handler: ProxyHandler<object> = {
    get: (target, key) => viewOf(Reflect.get(target, key)),
    getOwnPropertyDescriptor: (target, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(target, key);
      return descriptor && 'value' in descriptor ? { ...descriptor, value: viewOf(descriptor.value) } : descriptor;
    },
    set: refuse,
    deleteProperty: refuse,
    defineProperty: refuse,
    setPrototypeOf: (target) => refuse(target),
    preventExtensions: (target) => refuse(target),
  };
  return <T>(value: T) => viewOf(value) as T;
}
