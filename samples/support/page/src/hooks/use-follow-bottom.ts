import { useEffect, useRef, type RefObject } from 'react';

const NEAR_PX = 120;

/**
 * Keeps a scrolling element at its bottom while it grows, unless the reader has scrolled up.
 *
 * @param isBeginning Whether the user has just sent a message: then it scrolls down from any position.
 */
export function useFollowBottom(content: string, isBeginning: boolean): RefObject<HTMLDivElement | null> {
  const element = useRef<HTMLDivElement>(null);
  const near = useRef(true);

  useEffect(() => {
    const box = element.current;
    const look = () => {
      if (box) near.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    };
    box?.addEventListener('scroll', look, { passive: true });
    return () => box?.removeEventListener('scroll', look);
  }, []);

  useEffect(() => {
    const box = element.current;
    const fits = box !== null && box.scrollHeight <= box.clientHeight;
    if (isBeginning || fits) near.current = true;
    const follow = () => {
      if (near.current) box?.scrollTo({ top: box.scrollHeight });
    };
    follow();
    // For example an on-screen keyboard makes it smaller.
    const resized = new ResizeObserver(follow);
    if (box) resized.observe(box);
    return () => resized.disconnect();
  }, [content, isBeginning]);

  return element;
}
