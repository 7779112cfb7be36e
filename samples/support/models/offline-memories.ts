import type { MemoryExtractor } from 'genkitx-agents/memory';

const WORTH_IT = /\bI (?:prefer|like|love|hate|always|never|usually)\b|\bI am (?:allergic|vegan|vegetarian)\b/i;

/** How a request to remember something begins: `Remember that ...`, `Please remember: ...`. */
const REQUEST = /^\s*(?:please,?\s+)?remember(?:\s*[:,]\s*|\s+)(?:that\s+)?(?=\S)/i;

/** What the customer asks to have remembered; `undefined` when they ask for something else. */
export function askedToRemember(text: string): string | undefined {
  return REQUEST.test(text) ? text.replace(REQUEST, '') : undefined;
}

/** How a request to forget something begins: `Forget that ...`, `Please forget: ...`. */
const FORGET_REQUEST = /^\s*(?:please,?\s+)?forget(?:\s*[:,]\s*|\s+)(?:that\s+)?(?=\S)/i;

/** What the customer asks to have forgotten; `undefined` when they ask for something else. */
export function askedToForget(text: string): string | undefined {
  return FORGET_REQUEST.test(text) ? text.replace(FORGET_REQUEST, '') : undefined;
}

/** What is remembered of a sentence. A language model would put it in the third person. */
export function memoryOf(sentence: string): string {
  return `The customer says: "${sentence.trim().replace(/[.!]+$/, '')}."`;
}

/** Finds what is worth remembering by a rule: sentences of the customer about what they like or always do. */
export const findMemories: MemoryExtractor = ({ messages, positions }) =>
  messages.flatMap(({ role, content }, i) => {
    const sentences = content.flatMap(({ text = '' }) => text.split(/(?<=[.!?])\s+/));
    const worthIt =
      role === 'user' ? sentences.filter((one) => WORTH_IT.test(one) && askedToForget(one) === undefined) : [];
    return worthIt.map((sentence) => ({
      text: memoryOf(sentence.replace(REQUEST, '')),
      topics: ['USER_PREFERENCES'],
      messages: [positions[i]!],
      isExplicit: REQUEST.test(sentence),
    }));
  });
