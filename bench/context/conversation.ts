/** The standard workload as a conversation: the user's questions, the model's answers, and a tool call on every fifth turn. */
import { Workload } from '../workload.ts';

/** A tool call of the model. */
export interface ScriptedCall {
  readonly ref: string;
  readonly input: { readonly query: string };
  readonly output: Readonly<Record<string, unknown>>;
}

/** One turn, the same for every framework. */
export interface ScriptedTurn {
  readonly question: string;
  readonly call?: ScriptedCall;
  readonly reply: string;
}

export const TOOL = { name: 'lookup', description: 'Looks something up.' };

/** About 2 KB, like the instructions of an agent. */
export const INSTRUCTIONS = 'You help customers of a shop with their orders, and you are brief and friendly. '.repeat(
  25,
);

/** The first turns of the workload. */
export function scriptedTurns(count: number): ScriptedTurn[] {
  const workload = new Workload();
  let known = 0;
  return Array.from({ length: count }, () => {
    const messages = workload.next().messages!;
    const [question, asked, answered] = messages.slice(known).map(({ content }) => content[0]!);
    known = messages.length;
    const { input, ref } = asked?.toolRequest ?? {};
    const output = answered?.toolResponse?.output;
    return {
      question: question!.text!,
      ...(ref !== undefined && { call: { ref, input, output } as ScriptedCall }),
      reply: messages.at(-1)!.content[0]!.text!,
    };
  });
}

/** The n-th answer of a summarizer of this bench: about 600 tokens. */
export function scriptedSummary(n: number): string {
  const text = new Workload({ seed: n }).next().messages!.at(-1)!.content[0]!.text!;
  return `Summary ${n}. ${text} ${text}`;
}
