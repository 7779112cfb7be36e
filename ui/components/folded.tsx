import { useState, type ReactNode } from 'react';

interface Props {
  summary: ReactNode;
  className?: string;
  children: () => ReactNode;
}

/** Something that is looked at seldom. It is made when it is opened, however large it is. */
export function Folded({ summary, className, children }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details className={className} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  );
}
