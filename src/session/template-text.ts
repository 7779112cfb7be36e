import type { Registry } from 'genkit/registry';
import { isPlain } from '../json/fault.ts';
import { isInTurn } from './state/session-state.ts';

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

/** The template with breaks after {@link OPEN_MARKUP}. Markup of the author has `<<<dotprompt:` in one piece. */
function withoutOpenMarkup(source: Source): Source {
  if (typeof source !== 'string') return { ...source, template: withoutOpenMarkup(source.template) as string };
  return source.replace(OPEN_MARKUP, (open) => open + BREAK);
}

/** The places that need a break: after a `<`, and before a colon, where a value may contribute to the beginning of markup. */
const BREAK_POSITIONS = (() => {
  const restOfName = Array.from(MARKUP_NAME).reduceRight((rest, letter) => `(?:$|${letter}${rest})`, '');
  const word = MARKUP_NAME.slice(0, -1);
  const endsOfWord = Array.from(word, (_, index) => word.slice(index)).join('|');
  return new RegExp(`(?<=<)(?=${restOfName})|(?<=${word})(?=:|$)|(?<=^(?:${endsOfWord})?)(?=:)`, 'g');
})();

function escapeText(text: string): string {
  const withEscapes = text.replace(/[\uFDD0\uFDD1]/g, (own) => ESCAPE + (own === BREAK ? '0' : '1'));
  return withEscapes.replace(BREAK_POSITIONS, BREAK);
}

function unescapeText(text: string): string {
  return text.replaceAll(BREAK, '').replace(/\uFDD1([01])/g, (_, digit) => (digit === '0' ? BREAK : ESCAPE));
}

/** There is one view for each value, because templates compare them. */
const valueByView = new WeakMap<object, object>();
const viewByValue = new WeakMap<object, object>();

/** The value for a template: texts with breaks, objects as views. */
function escapeValue(value: unknown): unknown {
  if (typeof value === 'string') return escapeText(value);
  if (typeof value === 'function') return (...args: unknown[]) => escapeValue(Reflect.apply(value, undefined, args));
  if (typeof value !== 'object' || value === null || valueByView.has(value) || value instanceof Date) return value;
  let view = viewByValue.get(value);
  if (!view) {
    view = viewOf(value);
    viewByValue.set(value, view);
    valueByView.set(view, value);
  }
  return view;
}

/** Makes no copy, because a template shows little of a large state. The proxy target is another object, because the value may be frozen. */
function viewOf(value: object): object {
  const keyOf = (key: string | symbol) => (typeof key === 'string' ? unescapeText(key) : key);
  const isData = isPlain(value);
  const view: object = new Proxy<object>(Array.isArray(value) ? [] : {}, {
    get: (_target, escapedKey) => {
      const key = keyOf(escapedKey);
      if (key === Symbol.toPrimitive) return () => escapedText();
      const member: unknown = Reflect.get(value, key);
      if (typeof member !== 'function') return escapeValue(member);
      // Methods of an array see the view; methods of a class instance need the instance itself.
      return isData && !Object.hasOwn(value, key) ? member : escapeValue(member.bind(value));
    },
    has: (_target, key) => Reflect.has(value, keyOf(key)),
    ownKeys: () => Reflect.ownKeys(value).map((key) => (typeof key === 'string' ? escapeText(key) : key)),
    getOwnPropertyDescriptor: (_target, escapedKey) => {
      const key = keyOf(escapedKey);
      const property = Reflect.getOwnPropertyDescriptor(value, key);
      if (!property) return undefined;
      const { enumerable } = property;
      const isLength = Array.isArray(value) && key === 'length';
      return { value: escapeValue(Reflect.get(value, key)), enumerable, writable: true, configurable: !isLength };
    },
    getPrototypeOf: () => Reflect.getPrototypeOf(value),
  });
  // A member may be named `toString` and not be a function.
  const escapedText = (): string => {
    if (Array.isArray(value)) return Array.prototype.join.call(view, ',');
    return isData ? '[object Object]' : escapeText((value as { toString(): string }).toString());
  };
  return view;
}

/** The rendered value without breaks. */
function unescapeValue(rendered: unknown): unknown {
  if (typeof rendered === 'string') return unescapeText(rendered);
  if (typeof rendered !== 'object' || rendered === null) return rendered;
  const value = valueByView.get(rendered);
  if (value) return value;
  if (Array.isArray(rendered)) return rendered.map(unescapeValue);
  return Object.fromEntries(Object.entries(rendered).map(([name, member]) => [name, unescapeValue(member)]));
}

/** A registered symbol, so that the ES module and the CommonJS copy of the package recognize each other's guard. */
const GUARDED = Symbol.for('genkitx-agents.guarded-templates');

/**
 * Escapes values in the templates of the registry: markup in their input, in the session's state, the context and the history stays text
 * while an agent's turn runs. Markup of the template's author still works, even with values in it.
 * Templates that were rendered before this call are not guarded.
 */
export function guardTemplates({ dotprompt }: Registry): void {
  if (GUARDED in dotprompt) return;
  const compile: Dotprompt['compile'] = dotprompt.compile.bind(dotprompt);
  const guarded = async (...[source, ...rest]: Parameters<Dotprompt['compile']>): Promise<Template> => {
    const template = await compile(source, ...rest);
    const inTurn = await compile(withoutOpenMarkup(source), ...rest);
    const render = async (...[data, options]: Parameters<Template>): Promise<Rendered> => {
      if (!isInTurn()) return template(data, options);
      const escapedData = {
        ...data,
        input: escapeValue(data.input),
        context: escapeValue(data.context),
        messages: data.messages?.map(escapeValue),
      } as typeof data;
      const rendered = await inTurn(escapedData, options);
      return { ...rendered, messages: unescapeValue(rendered.messages) as Rendered['messages'] };
    };
    return Object.assign(render, { prompt: template.prompt });
  };
  Object.assign(dotprompt, { compile: guarded, [GUARDED]: true });
}
