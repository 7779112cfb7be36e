import { useState, type ReactNode } from 'react';

interface Props {
  summary: ReactNode;
  className?: string;
  children: () => ReactNode;
}

/** Content that is seldom opened. It is rendered when it is opened, because it may be large. */
export function Folded({ summary, className, children }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details className={className} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  );
}
