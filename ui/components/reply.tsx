import Markdown, { defaultUrlTransform, type Components, type Options } from 'react-markdown';
import rehypeHighlight from 'rehype-highlight';
import remarkGfm from 'remark-gfm';

/** Wide content scrolls in a separate box, also by the keyboard. */
const COMPONENTS: Components = {
  table: ({ children }) => (
    <div className="scroll" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  a: ({ children, href = '', title }) =>
    defaultUrlTransform(href) === href ? (
      <a href={href} title={title} target="_blank" rel="noreferrer">
        {children}
      </a>
    ) : (
      <>
        {children} (<code>{href}</code>)
      </>
    ),
  img: ({ alt = '', src = '', title }) => <code>{`![${alt}](${src}${title ? ` "${title}"` : ''})`}</code>,
};

type RehypeOptions = NonNullable<Options['remarkRehypeOptions']>;
type Handler = NonNullable<NonNullable<RehypeOptions['handlers']>['definition']>;
interface Definition {
  identifier: string;
  position?: { start: { offset?: number }; end: { offset?: number } };
}

/** Shows the source of definitions: without references to them they would be hidden. A referenced footnote is at the end. */
const showSource: Handler = ({ options, footnoteOrder }, { identifier, position }: Definition) => {
  if (footnoteOrder.includes(identifier.toUpperCase())) return undefined;
  const value = String(options.file).slice(position?.start.offset, position?.end.offset);
  return { type: 'element', tagName: 'p', properties: {}, children: [{ type: 'text', value }] };
};
const REHYPE_OPTIONS: RehypeOptions = { handlers: { definition: showSource, footnoteDefinition: showSource } };

/** Longer text is shown as plain text: its Markdown would take seconds, and more elements than a page can have. */
const MOST_MARKDOWN = 50_000;

/** Created once, because it loads dozens of languages. */
const highlight = rehypeHighlight();
const PLUGINS = [() => highlight];

/**
 * Text of the agent, in Markdown with tables, links, strikethrough and highlighted code. Raw HTML, images and links to programs are shown as
 * text: no part of a reply is hidden, and none makes the browser fetch something.
 */
export function Reply({ text }: { text: string }) {
  if (text.length > MOST_MARKDOWN) return <div className="reply plain">{text}</div>;
  return (
    <div className="reply">
      <Markdown
        urlTransform={(url) => url}
        remarkRehypeOptions={REHYPE_OPTIONS}
        remarkPlugins={[remarkGfm]}
        rehypePlugins={PLUGINS}
        components={COMPONENTS}
      >
        {text}
      </Markdown>
    </div>
  );
}
