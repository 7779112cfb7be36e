/**
 * Returns a function that makes deeply immutable views of JSON values. Changing a view throws the error of `refusal`, which gets the name
 * of the affected member; unlike the error of a frozen copy, it can say what to do instead. Views are created on access, one for each
 * object.
 */
export function readOnlyViews(refusal: (key?: string) => Error): <T>(value: T) => T {
  const views = new WeakMap<object, object>();
  const viewOf = (member: unknown, handler: ProxyHandler<object>): unknown => {
    if (typeof member !== 'object' || member === null) return member;
    const known = views.get(member);
    if (known) return known;
    const view = new Proxy(member, handler);
    views.set(member, view);
    return view;
  };
  /** `inside`: the member of the whole value that contains the object; `undefined` for the value itself. */
  const handlerOf = (inside?: string): ProxyHandler<object> => {
    const memberOf = (key?: string | symbol): string | undefined =>
      inside ?? (typeof key === 'string' ? key : undefined);
    const refuse = (_target: object, key?: string | symbol): never => {
      throw refusal(memberOf(key));
    };
    const below = (value: unknown, key: string | symbol): unknown =>
      typeof value === 'object' ? viewOf(value, inside === undefined ? handlerOf(memberOf(key)) : handler) : value;
    const handler: ProxyHandler<object> = {
      get: (target, key) => below(Reflect.get(target, key), key),
      getOwnPropertyDescriptor: (target, key) => {
        const descriptor = Reflect.getOwnPropertyDescriptor(target, key);
        return descriptor && 'value' in descriptor
          ? { ...descriptor, value: below(descriptor.value, key) }
          : descriptor;
      },
      set: refuse,
      deleteProperty: refuse,
      defineProperty: refuse,
      setPrototypeOf: (target) => refuse(target),
      preventExtensions: (target) => refuse(target),
    };
    return handler;
  };
  const whole = handlerOf();
  return <T>(value: T) => viewOf(value, whole) as T;
}
