import type { MemoryExtractor } from 'genkitx-agents/memory';

const WORTH_IT = [
  /\bI (?:(?:really|do not|don't|only|always|never|usually|often|no longer) )?(?:prefer|like|love|enjoy|dislike|hate|avoid|eat|drink|live|work|own|drive|speak|play)\b/i,
  /\bI (?:always|never|usually)\b/i,
  /\bI(?: am|'m) (?:not )?(?:allergic|intolerant|vegan|vegetarian|married|left-handed|colou?r-?blind)\b/i,
  /\bI(?: have|'ve| just)? moved to\b/i,
  /\bmy (?:favou?rite|name|birthday|wife|husband|partner|son|daughter|children|kids|brother|sister|mother|father|dog|cat)\b/i,
];
/** A question, or a sentence about remembering itself. */
const NOT_WORTH_IT =
  /\?$|^\s*(?:do|does|did|what|who|where|when|why|how|which)\b|\bforget\b|\b(?:not|n't|never) remember\b/i;

/** How a request to remember something begins: `Remember that ...`, `Please remember: ...`. */
const REQUEST = /^\s*(?:please,?\s+)?remember(?:\s*[:,]\s*|\s+)(?:that\s+)?(?=\S)/i;

/** The text that the customer wants to be remembered; `undefined` for another request. */
export function askedToRemember(text: string): string | undefined {
  return REQUEST.test(text) ? text.replace(REQUEST, '') : undefined;
}

/** How a request to forget something begins: `Forget that ...`, `Please forget: ...`. */
const FORGET_REQUEST = /^\s*(?:please,?\s+)?forget(?:\s*[:,]\s*|\s+)(?:that\s+)?(?=\S)/i;

/** The text that the customer wants to be forgotten; `undefined` for another request. */
export function askedToForget(text: string): string | undefined {
  return FORGET_REQUEST.test(text) ? text.replace(FORGET_REQUEST, '') : undefined;
}

/** The memory of a sentence. A language model would write it in the third person. */
export function memoryOf(sentence: string): string {
  return `The customer says: "${sentence.trim().replace(/[.!]+$/, '')}."`;
}

function isWorthIt(sentence: string): boolean {
  return !NOT_WORTH_IT.test(sentence) && WORTH_IT.some((pattern) => pattern.test(sentence));
}

/** Finds facts by rules: sentences in which customers say who they are, what they like, or what they always do. */
export const findMemories: MemoryExtractor = ({ messages, positions }) =>
  messages.flatMap(({ role, content }, i) => {
    const sentences = content.flatMap(({ text = '' }) => text.split(/(?<=[.!?])\s+|\n+/));
    const worthIt = role === 'user' ? sentences.filter(isWorthIt) : [];
    return worthIt.map((sentence) => ({
      text: memoryOf(sentence.replace(REQUEST, '')),
      topics: ['USER_PREFERENCES'],
      messages: [positions[i]!],
      isExplicit: REQUEST.test(sentence),
    }));
  });
