// Finds words and phrases in code, tests and docs that are hard to understand, and shows what to write instead.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Each pattern, with the text to write instead. */
const WORDS = [
  [/\bunless told\b/i, "'Default: ...'"],
  [/\bwhoever\b/i, 'the noun: the caller, the writer, the owner'],
  [/\bnobody\b/i, 'the noun, negated: no caller, no process'],
  [/\bsomebody( else)?('s)?\b/i, 'the noun: another process, another caller'],
  [/\bof another make\b/i, 'foreign'],
  [
    /\bwho (reads|calls|writes|looks|asks|waits|comes|has|runs|wants|listens|detaches)\b/i,
    'the noun: the caller, the reader',
  ],
  [/\bwhat (is|was) told\b/i, 'the message, the value, the notification'],
  [/\babsent: /i, "'Optional.' or the default"],
  [/\bstrangers?\b/i, 'foreign'],
  [/\bguests?\b/i, 'foreign'],
  [/\bpatience\b/i, 'timeout or deadline'],
  [/\bdoubts?\b/i, 'revalidate'],
  [/\bsettled (status|snapshot)/i, 'terminal'],
  [/\bwhereabouts\b|\blifeline\b|\baftermath\b|\bisWordy\b/i, 'a name that says the thing'],
  [/(?<!\bthere )\bis no (?!longer\b|such\b|problem\b)\w/i, "'is not a ...', or 'has no ...'"],
  [/\bgo(es)? on without\b/i, 'continues without'],
  [/\bremove[sd]?\b.*\bfor good\b/i, 'permanently'],
  [/\bwhat \{@link \w+\} (needs|works with)\b/i, 'nothing: leave the docstring out'],
];

/** This file, and files with texts of users. */
const EXEMPT = new Set([
  'scripts/check-words.mjs',
  'test/memory/pipeline/harmless-corpus.ts',
  'test/memory/pipeline/poison-languages.ts',
]);

const { stdout } = spawnSync('git', ['ls-files', '*.ts', '*.tsx', '*.mjs', '*.md', '*.sh', '*.yml'], {
  cwd: root,
  encoding: 'utf8',
});
const found = [];
for (const file of stdout.split('\n').filter((name) => name !== '' && !EXEMPT.has(name))) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  for (const [i, line] of lines.entries()) {
    for (const [word, instead] of WORDS) {
      const match = word.exec(line);
      if (match) found.push(`${file}:${i + 1}: '${match[0]}'; write ${instead}`);
    }
  }
}
if (found.length > 0) {
  console.error(`${found.join('\n')}\ncheck-words: ${found.length} places`);
  process.exit(1);
}
