import { useEffect, useRef } from 'react';

interface Props {
  className?: string;
  children: string;
}

let isFirst = true;

/** The heading of a view, and the title of the window. It takes the focus if the clicked link does not exist any more. */
export function Heading({ className, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isFirst && document.activeElement === document.body) heading.current?.focus();
    isFirst = false;
  }, []);
  useEffect(() => {
    document.title = `${children} – Inspector`;
  }, [children]);
  return (
    <h1 ref={heading} id="view-title" className={className} tabIndex={-1}>
      {children}
    </h1>
  );
}
