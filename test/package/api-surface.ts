import { basename, relative } from 'node:path';
import ts from 'typescript';
import { entryFiles, root } from './program.ts';

/** Members that users of the package cannot use. */
const HIDDEN = /^(?:#private|private |readonly \[(?:KIND|MARK)\])/;

/**
 * All that the package exports, as text: for each import path its names in alphabetical order, each with its declaration on one line, the
 * members of a class or an interface on lines of their own. Comments are no part of it.
 */
export function describeSurface(program: ts.Program): string {
  const declarations = new Declarations(program);
  return entryFiles.map((file) => describeEntry(program, declarations, file)).join('\n');
}

function describeEntry(program: ts.Program, declarations: Declarations, file: string): string {
  const name = basename(file, '.ts');
  const lines = [`== genkitx-agents${name === 'index' ? '' : `/${name}`} ==`];
  const exported = new Map<string, ts.Symbol>();
  const checker = program.getTypeChecker();
  for (const statement of program.getSourceFile(file)!.statements.filter(ts.isExportDeclaration)) {
    const from = statement.moduleSpecifier as ts.StringLiteral;
    if (statement.exportClause && ts.isNamedExports(statement.exportClause)) {
      for (const { name } of statement.exportClause.elements) {
        exported.set(name.text, checker.getSymbolAtLocation(name)!);
      }
    } else if (from.text.startsWith('.')) {
      const module = checker.getSymbolAtLocation(from)!;
      for (const symbol of checker.getExportsOfModule(module)) exported.set(symbol.name, symbol);
    } else {
      lines.push(`* from '${from.text}'`);
    }
  }
  for (const [name, symbol] of [...exported].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const origin = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    lines.push(...declarations.describe(name, origin));
  }
  return `${lines.join('\n')}\n`;
}

/** The declarations of a program as the compiler writes them for the package's users. */
class Declarations {
  readonly #program: ts.Program;
  readonly #files = new Map<string, ts.SourceFile>();

  constructor(program: ts.Program) {
    this.#program = program;
  }

  /** The lines of a name. */
  describe(name: string, symbol: ts.Symbol): string[] {
    const source = symbol.declarations![0]!.getSourceFile();
    const foreign = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source.fileName)?.[1];
    if (foreign) return [`${name}: of '${foreign}'`];
    const file = this.#emitted(source);
    const own = file.statements.filter((statement) => namesOf(statement).includes(symbol.name));
    if (own.length === 0) throw new Error(`${name} is not declared in ${relative(root, source.fileName)}.`);
    const renamed = name === symbol.name ? [] : [`${name} is ${symbol.name}:`];
    return [...renamed, ...own.flatMap((statement) => describe(statement, file))];
  }

  #emitted(source: ts.SourceFile): ts.SourceFile {
    const known = this.#files.get(source.fileName);
    if (known) return known;
    let text = '';
    this.#program.emit(source, (_name, written) => (text = written), undefined, true);
    const file = ts.createSourceFile(source.fileName, text, ts.ScriptTarget.Latest, true);
    this.#files.set(source.fileName, file);
    return file;
  }
}

function namesOf(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  }
  const { name } = statement as ts.Statement & { name?: ts.Identifier };
  return name ? [name.text] : [];
}

function describe(statement: ts.Statement, file: ts.SourceFile): string[] {
  if (!ts.isClassDeclaration(statement) && !ts.isInterfaceDeclaration(statement)) {
    return [oneLine(statement.getText(file))];
  }
  const text = statement.getText(file);
  const body = statement.members.length > 0 ? statement.members[0]!.getFullStart() : statement.end - 1;
  const head = text.slice(0, body - statement.getStart(file)).replace(/\{\s*(?:\}\s*)?$/, '');
  const members = statement.members.map((member) => oneLine(member.getText(file)));
  return [oneLine(head), ...members.filter((member) => !HIDDEN.test(member)).map((member) => `    ${member}`)];
}

function oneLine(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replace(/^export (?:declare )?/, '')
    .replace(/;$/, '')
    .trim();
}
