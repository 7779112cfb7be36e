import Markdown, { type Components } from 'react-markdown';
import rehypeHighlight from 'rehype-highlight';
import remarkGfm from 'remark-gfm';

/** What is wider than the column scrolls in a box of its own, also by the keyboard. */
const COMPONENTS: Components = {
  table: ({ children }) => (
    <div className="scroll" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  a: ({ children, href }) => (
    <a href={href} target="_blank" rel="noreferrer">
      {children}
    </a>
  ),
};

/** Made once: it knows dozens of languages. */
const highlight = rehypeHighlight();
const PLUGINS = [() => highlight];

/**
 * Text of the agent, in Markdown with tables, links, strikethrough and highlighted code. Raw HTML is shown as text, and images are left out:
 * a reply never makes the browser fetch something.
 */
export function Reply({ text }: { text: string }) {
  return (
    <div className="reply">
      <Markdown
        disallowedElements={['img']}
        remarkPlugins={[remarkGfm]}
        rehypePlugins={PLUGINS}
        components={COMPONENTS}
      >
        {text}
      </Markdown>
    </div>
  );
}
