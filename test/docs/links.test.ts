/** What the pages name is there: the files that they link to, the headings, and the source files between backticks. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { brokenLinks, textOf } from './links.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function filesBelow(folder: string, ending: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

const isBuilt = (path: string) => path.startsWith(join('docs', 'api'));
const pages = ['README.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md').filter((path) => !isBuilt(path))];
const sources = ['src', 'stores', 'plugins', 'entries', 'test', 'bench'].flatMap((folder) => filesBelow(folder, '.ts'));

function missingSources(text: string): string[] {
  const named = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map((match) => match[1]!);
  return named.filter((name) => !sources.some((source) => source === name || source.endsWith(`/${name}`)));
}

describe('what the docs name is there', () => {
  it.each(pages)('%s has no broken link', (page) => {
    expect(brokenLinks(root, page)).toEqual([]);
  });

  it.each(['CONTRIBUTING.md', ...pages.filter((page) => /architecture|decisions/.test(page))])(
    '%s names source files that exist',
    (page) => {
      expect(missingSources(textOf(root, page))).toEqual([]);
    },
  );

  it('is found out when it is not', () => {
    const text = '[here](http.md) [there](gone.md) [below](http.md#gone) `src/gone.ts` `run-turn.ts`';
    expect(brokenLinks(root, 'docs/agents.md', text)).toEqual(['](gone.md)', '](http.md#gone)']);
    expect(missingSources(text)).toEqual(['src/gone.ts']);
  });
});
