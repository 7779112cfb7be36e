import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { analyse } from 'scslre';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { piiRules, redactText } from 'genkitx-agents/privacy';

const folder = fileURLToPath(new URL('../../src/privacy', import.meta.url));

interface Expression {
  readonly where: string;
  readonly source: string;
  readonly flags: string;
}

const { expressions, others } = read();

/** All regular expressions of the folder, and the places where one is created from text, which the check can't read. */
function read(): { expressions: Expression[]; others: string[] } {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const expressions: Expression[] = [];
  const others: string[] = [];
  for (const name of files) {
    const file = ts.createSourceFile(name, readFileSync(join(folder, name), 'utf8'), ts.ScriptTarget.ES2022, true);
    const visit = (node: ts.Node): void => {
      const where = `${name}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
      if (ts.isRegularExpressionLiteral(node)) {
        const end = node.text.lastIndexOf('/');
        expressions.push({ where, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
      }
      if (ts.isNewExpression(node) && node.expression.getText() === 'RegExp') others.push(where);
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return { expressions, others };
}

/** The expressions that take more than linear time, for a bad text or when the search restarts at each position. */
function superLinear({ source, flags }: Pick<Expression, 'source' | 'flags'>): string[] {
  const { reports } = analyse({ source, flags }, { reportTypes: { Move: true, Self: true, Trade: true } });
  return reports.map(({ type, exponential }) => `${type}${exponential ? ', exponential' : ''}`);
}

describe('the check', () => {
  it.each([
    ['(?<![\\w-])(a+b?)+(?=c)x', 'gu'],
    ['(?<!x)[\\w.]+@', 'g'],
    ['a+b', 'g'],
    ['^(?:a+)+$', ''],
    ['x*y?x*z', 'u'],
  ])('finds what takes longer: %s', (source, flags) => {
    expect(superLinear({ source, flags })).not.toEqual([]);
  });
});

describe('the regular expressions of the rules', () => {
  it('are all literals', () => {
    expect(expressions.length).toBeGreaterThan(60);
    expect(others).toEqual([]);
  });

  it.each(expressions)('take time in proportion to the text: $where', (expression) => {
    expect(superLinear(expression)).toEqual([]);
  });
});

const CHARACTERS = ['0', '(', '+', '-', '.', ':', '@', 'a', 'é', '数', '"', '\\', '{', '[', '/', ' ', '\n'];
/** Texts that begin or end a value, or have to be counted or replaced. */
const BEGINNINGS =
  '4 |0123 4567890 |a@|a.|://a:|%40|eyJ|eyJa.|sk-|-----BEGIN PRIVATE KEY-----|DE89 |1.1.1.|a:|born |[EMAIL_|data:a/b;base64,|"a":|٤|\u200b'.split(
    '|',
  );

describe('a large text of one repeated part is searched in time', () => {
  const rules = piiRules();
  const texts = [
    ...CHARACTERS.map((row) => ({ row, size: 300_000 })),
    ...BEGINNINGS.map((row) => ({ row, size: 100_000 })),
  ];

  // No time is asserted: with the square of the size it would run into the timeout of the test.
  it.each(texts)('$size times $row', async ({ row, size }) => {
    const text = row.repeat(Math.ceil(size / row.length));
    const { value } = await redactText(text, rules);
    expect(value.length).toBeGreaterThan(0);
  });
});
