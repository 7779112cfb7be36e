/** What the pages name is there: the files that they link to, the headings, and the source files between backticks. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

function filesBelow(folder: string, ending: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

const isBuilt = (path: string) => path.startsWith(join('docs', 'api'));
const pages = ['README.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md').filter((path) => !isBuilt(path))];
const sources = ['src', 'stores', 'plugins', 'entries', 'test', 'bench'].flatMap((folder) => filesBelow(folder, '.ts'));

/** A page's text without its blocks of code. */
function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): string[] {
  const headings = [...textOf(page).matchAll(/^#+ (.*)$/gm)].map((match) => match[1]!);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinks(page: string, text = textOf(page)): string[] {
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
  return links
    .filter(([, path, anchor]) => {
      const target = path ? relative(root, join(root, dirname(page), path)) : page;
      return !existsSync(join(root, target)) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
    })
    .map(([link]) => link);
}

function missingSources(text: string): string[] {
  const named = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map((match) => match[1]!);
  return named.filter((name) => !sources.some((source) => source === name || source.endsWith(`/${name}`)));
}

describe('what the docs name is there', () => {
  it.each(pages)('%s has no broken link', (page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it.each(['CONTRIBUTING.md', ...pages.filter((page) => /architecture|decisions/.test(page))])(
    '%s names source files that exist',
    (page) => {
      expect(missingSources(textOf(page))).toEqual([]);
    },
  );

  it('is found out when it is not', () => {
    const text = '[here](http.md) [there](gone.md) [below](http.md#gone) `src/gone.ts` `run-turn.ts`';
    expect(brokenLinks('docs/agents.md', text)).toEqual(['](gone.md)', '](http.md#gone)']);
    expect(missingSources(text)).toEqual(['src/gone.ts']);
  });
});
