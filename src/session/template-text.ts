import type { Registry } from 'genkit/registry';
import { isPlain } from '../json/fault.ts';

/*
 * Markup for messages and media may come from the template's author, never from a value that the template shows. Genkit's template engine
 * renders both into one text and then parses the markup in it. So an invisible character, the break, is put into values wherever they could
 * form the beginning of markup, alone or together with the text beside them. The breaks are removed from the rendered messages.
 */

type Dotprompt = Registry['dotprompt'];
type Source = Parameters<Dotprompt['compile']>[0];
type Template = Awaited<ReturnType<Dotprompt['compile']>>;
type Rendered = Awaited<ReturnType<Template>>;

/** Unicode noncharacters, reserved for internal use in programs. A value's own ones are escaped as `ESCAPE` and a digit. */
const BREAK = '\uFDD0';
const ESCAPE = '\uFDD1';

/** Markup begins with `<<<` and this. */
const MARKUP_NAME = 'dotprompt:';

/** A beginning of markup right before an expression: the expression's value could complete it. */
const OPEN_MARKUP = (() => {
  const restOfMarkup = Array.from('<<' + MARKUP_NAME.slice(0, -1)).reduceRight(
    (rest, letter) => `(?:${letter}${rest})?`,
    '',
  );
  return new RegExp(`<${restOfMarkup}(?=\\{\\{|\\s+\\{\\{~)`, 'g');
})();

/** The template with breaks after {@link OPEN_MARKUP}. Markup that the author means has `<<<dotprompt:` in one piece. */
function withoutOpenMarkup(source: Source): Source {
  if (typeof source !== 'string') return { ...source, template: withoutOpenMarkup(source.template) as string };
  return source.replace(OPEN_MARKUP, (open) => open + BREAK);
}

/** The places that need a break: after a `<`, and before a colon, where a value may contribute to the beginning of markup. */
const RISKS = (() => {
  const restOfName = Array.from(MARKUP_NAME).reduceRight((rest, letter) => `(?:$|${letter}${rest})`, '');
  const word = MARKUP_NAME.slice(0, -1);
  const endsOfWord = Array.from(word, (_, index) => word.slice(index)).join('|');
  return new RegExp(`(?<=<)(?=${restOfName})|(?<=${word})(?=:|$)|(?<=^(?:${endsOfWord})?)(?=:)`, 'g');
})();

function toShown(text: string): string {
  const escaped = text.replace(/[\uFDD0\uFDD1]/g, (own) => ESCAPE + (own === BREAK ? '0' : '1'));
  return escaped.replace(RISKS, BREAK);
}

function toMeant(text: string): string {
  return text.replaceAll(BREAK, '').replace(/\uFDD1([01])/g, (_, digit) => (digit === '0' ? BREAK : ESCAPE));
}

/** Values by their views, and views by their values: one view for each value, because templates compare them. */
const shownBy = new WeakMap<object, object>();
const views = new WeakMap<object, object>();

/** The value for a template: texts with breaks, objects as views. */
function show(value: unknown): unknown {
  if (typeof value === 'string') return toShown(value);
  if (typeof value === 'function') return (...args: unknown[]) => show(Reflect.apply(value, undefined, args));
  if (typeof value !== 'object' || value === null || shownBy.has(value) || value instanceof Date) return value;
  let view = views.get(value);
  if (!view) {
    view = viewOf(value);
    views.set(value, view);
    shownBy.set(view, value);
  }
  return view;
}

/** Makes no copy, because a template shows little of a large state. The proxy target is another object, because the value may be frozen. */
function viewOf(value: object): object {
  const keyOf = (key: string | symbol) => (typeof key === 'string' ? toMeant(key) : key);
  const isData = isPlain(value);
  const view: object = new Proxy<object>(Array.isArray(value) ? [] : {}, {
    get: (_target, shownKey) => {
      const key = keyOf(shownKey);
      if (key === Symbol.toPrimitive) return () => shownText();
      const member: unknown = Reflect.get(value, key);
      if (typeof member !== 'function') return show(member);
      // Methods of an array see the view; methods of a class instance need the instance itself.
      return isData && !Object.hasOwn(value, key) ? member : show(member.bind(value));
    },
    has: (_target, key) => Reflect.has(value, keyOf(key)),
    ownKeys: () => Reflect.ownKeys(value).map((key) => (typeof key === 'string' ? toShown(key) : key)),
    getOwnPropertyDescriptor: (_target, shownKey) => {
      const key = keyOf(shownKey);
      const property = Reflect.getOwnPropertyDescriptor(value, key);
      if (!property) return undefined;
      const { enumerable } = property;
      const isLength = Array.isArray(value) && key === 'length';
      return { value: show(Reflect.get(value, key)), enumerable, writable: true, configurable: !isLength };
    },
    getPrototypeOf: () => Reflect.getPrototypeOf(value),
  });
  // A member may be named `toString` and not be a function.
  const shownText = (): string => {
    if (Array.isArray(value)) return Array.prototype.join.call(view, ',');
    return isData ? '[object Object]' : toShown((value as { toString(): string }).toString());
  };
  return view;
}

/** The rendered value without breaks. */
function reveal(rendered: unknown): unknown {
  if (typeof rendered === 'string') return toMeant(rendered);
  if (typeof rendered !== 'object' || rendered === null) return rendered;
  const shown = shownBy.get(rendered);
  if (shown) return shown;
  if (Array.isArray(rendered)) return rendered.map(reveal);
  return Object.fromEntries(Object.entries(rendered).map(([name, member]) => [name, reveal(member)]));
}

/** A registered symbol, so that the ES module and the CommonJS copy of the package recognize each other's guard. */
const GUARDED = Symbol.for('genkitx-agents.guarded-templates');

/**
 * Escapes values in the templates of the registry: markup in their input, in the session's state, the context and the history stays text, as
 * long as `isGuarded` returns true at rendering. Markup of the template's author still works, even with values in it.
 * Templates that were rendered before this call are not guarded.
 */
export function guardTemplates({ dotprompt }: Registry, isGuarded: () => boolean): void {
  if (GUARDED in dotprompt) return;
  const compile: Dotprompt['compile'] = dotprompt.compile.bind(dotprompt);
  const guarded = async (...[source, ...rest]: Parameters<Dotprompt['compile']>): Promise<Template> => {
    const template = await compile(source, ...rest);
    const inTurn = await compile(withoutOpenMarkup(source), ...rest);
    const render = async (...[data, options]: Parameters<Template>): Promise<Rendered> => {
      if (!isGuarded()) return template(data, options);
      const shown = {
        ...data,
        input: show(data.input),
        context: show(data.context),
        messages: data.messages?.map(show),
      } as typeof data;
      const rendered = await inTurn(shown, options);
      return { ...rendered, messages: reveal(rendered.messages) as Rendered['messages'] };
    };
    return Object.assign(render, { prompt: template.prompt });
  };
  Object.assign(dotprompt, { compile: guarded, [GUARDED]: true });
}
