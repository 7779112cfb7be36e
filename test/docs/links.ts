import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** A page's text without its blocks of code. */
export function textOf(root: string, page: string): string {
  return readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(root: string, page: string): string[] {
  const headings = [...textOf(root, page).matchAll(/^#+ (.*)$/gm)].map((match) => match[1]!);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** The links of a page below `root` that lead to no file there, or to no heading of one. */
export function brokenLinks(root: string, page: string, text = textOf(root, page)): string[] {
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
  return links
    .filter(([, path, anchor]) => {
      const target = path ? relative(root, join(root, dirname(page), path)) : page;
      return !existsSync(join(root, target)) || (anchor !== undefined && !anchorsOf(root, target).includes(anchor));
    })
    .map(([link]) => link);
}
