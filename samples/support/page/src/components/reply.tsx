import Markdown from 'react-markdown';

/** Text of the agent, in Markdown. Raw HTML is shown as text, and images are left out: a reply never makes the browser fetch something. */
export function Reply({ text }: { text: string }) {
  return (
    <div className="reply">
      <Markdown disallowedElements={['img']}>{text}</Markdown>
    </div>
  );
}
