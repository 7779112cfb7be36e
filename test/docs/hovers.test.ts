/** The text that an editor shows for an option of the public interface. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The types of the options, by the function or option that takes them. */
const OPTIONS: Record<string, string> = {
  defineAgent: "import('genkitx-agents').AgentConfig",
  definePromptAgent: "import('genkitx-agents').PromptAgentConfig",
  defineCustomAgent: "import('genkitx-agents').CustomAgentConfig",
  background: "NonNullable<import('genkitx-agents').AgentConfig['background']>",
  clientTransform: "NonNullable<import('genkitx-agents').AgentConfig['clientTransform']>",
  limits: "NonNullable<import('genkitx-agents').AgentConfig['limits']>",
  scopes: "NonNullable<import('genkitx-agents').AgentConfig['scopes']>",
  turnOverrides: "NonNullable<import('genkitx-agents').AgentConfig['turnOverrides']>",
  agentRuntime: "import('genkitx-agents').AgentRuntimeOptions",
  genkit: "NonNullable<Parameters<typeof import('genkitx-agents').genkit>[0]>",
  chat: "NonNullable<Parameters<import('genkitx-agents').Agent['chat']>[0]>",
  'chat, its second argument': "NonNullable<Parameters<import('genkitx-agents').Agent['chat']>[1]>",
  send: "Exclude<Parameters<import('genkitx-agents').AgentChat['send']>[0], string>",
  'send, its second argument': "NonNullable<Parameters<import('genkitx-agents').AgentChat['send']>[1]>",
  waitForSnapshot: "NonNullable<Parameters<import('genkitx-agents').Agent['waitForSnapshot']>[1]>",
  recoverRuns: "NonNullable<Parameters<typeof import('genkitx-agents').recoverRuns>[1]>",
  handOverRuns: "NonNullable<Parameters<typeof import('genkitx-agents').handOverRuns>[1]>",
  SessionRunner: "NonNullable<ConstructorParameters<typeof import('genkitx-agents').SessionRunner>[2]>",
  SessionService: "NonNullable<ConstructorParameters<typeof import('genkitx-agents').SessionService>[1]>",
  FileSessionStore: "NonNullable<ConstructorParameters<typeof import('genkitx-agents').FileSessionStore>[1]>",
  InMemorySessionStore: "NonNullable<ConstructorParameters<typeof import('genkitx-agents').InMemorySessionStore>[0]>",
  FirestoreSessionStore:
    "NonNullable<ConstructorParameters<typeof import('genkitx-agents/firebase').FirestoreSessionStore>[0]>",
  remoteAgent: "Exclude<Parameters<typeof import('genkitx-agents/client').remoteAgent>[0], string>",
  agentHandler: "Parameters<typeof import('genkitx-agents/server').agentHandler>[1]",
  agentRouter: "Parameters<typeof import('genkitx-agents/server').agentRouter>[1]",
  piiRules: "NonNullable<Parameters<typeof import('genkitx-agents/privacy').piiRules>[0]>",
  redactText: "NonNullable<Parameters<typeof import('genkitx-agents/privacy').redactText>[2]>",
  redactValue: "NonNullable<Parameters<typeof import('genkitx-agents/privacy').redactValue>[2]>",
  cloudDlp: "Parameters<typeof import('genkitx-agents/privacy').cloudDlp>[1]",
  modelArmor: "Parameters<typeof import('genkitx-agents/privacy').modelArmor>[1]",
};

const COMPILER_TIMEOUT_MS = 300_000;

/** The members of each type, and those without a text of their own. */
function silentMembers(): Record<string, { count: number; silent: string[] }> {
  const file = join(root, 'hovers.example.ts');
  const names = Object.keys(OPTIONS);
  const text = Object.values(OPTIONS)
    .map((type, i) => `export type Options${i} = ${type};`)
    .join('\n');
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, root);
  const disk = ts.createCompilerHost(options);
  const program = ts.createProgram([file], options, {
    ...disk,
    fileExists: (path) => path === file || disk.fileExists(path),
    readFile: (path) => (path === file ? text : disk.readFile(path)),
    getSourceFile: (path, version, ...rest) =>
      path === file ? ts.createSourceFile(path, text, version) : disk.getSourceFile(path, version, ...rest),
  });
  const checker = program.getTypeChecker();
  const aliases = program.getSourceFile(file)!.statements.filter(ts.isTypeAliasDeclaration);
  return Object.fromEntries(
    aliases.map((alias, i) => {
      const members = checker.getPropertiesOfType(checker.getTypeAtLocation(alias.name));
      const silent = members.filter((member) => member.getDocumentationComment(checker).length === 0);
      return [names[i], { count: members.length, silent: silent.map(({ name }) => name) }];
    }),
  );
}

describe('an editor says what each option does', () => {
  const found = silentMembers();

  it.each(Object.keys(OPTIONS))(
    'of %s',
    (name) => {
      expect(found[name]!.count).toBeGreaterThan(0);
      expect(found[name]!.silent).toEqual([]);
    },
    COMPILER_TIMEOUT_MS,
  );
});
