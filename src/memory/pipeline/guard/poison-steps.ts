/**
 * The wordings that are allowed only in steps, and those that are refused only in steps. Steps name tools, checks, and the members of a
 * tool's input. Allowed wordings are removed before the rules read a step. All patterns are for normalized texts, and for one step at a
 * time.
 */

const SUBJECT = String.raw`(?:the|this|that|their|its|an?) (?:[\w'-]+ ){1,2}?`;
/** The rest of a clause, up to a word that would begin an order. */
const CLAUSE_REST = String.raw`(?:(?!\b(?:then|tell|say|treat|grant|assume|consider|note|remember|report|state|claim|and|they|he|she|because|already|always|now|any|which)\b)[^.,;:!?\n"])*`;

export const INSTRUCTION_STEPS: readonly RegExp[] = [
  /\btools?\b(?! ?:)/g,
  /\b(?:never|do not|don't)(?! (?:stop|wait|hesitate|pause|delay)\b)(?: (?!(?:and|but|just|or)\b)[\w-]+){1,8} without (?:asking|confirmation|verification|checking|approval)\b/g,
];

export const RIGHTS_STEPS: readonly RegExp[] = [
  new RegExp(String.raw`\b(?:verify|check|determine|find out|see) (?:that|if|whether) ${CLAUSE_REST}`, 'g'),
  new RegExp(
    String.raw`\b(?:if|whether|unless|until|when|once|after|before) ${SUBJECT}(?:is|are|was|were|has|have|does)\b${CLAUSE_REST}`,
    'g',
  ),
];

export const INSTRUCTIONS_REFUSED: readonly RegExp[] = [
  // An address in a step may be a target for stolen data. The model is asked to omit the values of its one case.
  /https?:\/\/|[^\s@]{1,64}@[^\s@]{2}/,
  /\bwithout (?:asking|confirmation|verification|checking|approval)\b/,
  /\b(?:ignore|bypass|skip|disable|replace) (?:the|all|any) (?:[\w-]+ ){0,2}(?:rules|checks?)\b/,
  /\b(?:print|post|send|reveal) the (?:password|credentials|api keys)\b/,
];

export const OTHERS_REFUSED: readonly RegExp[] = [
  /\b(?:all|every|any|each|other|another) (?:other )?(?:users?|customers?)\b/,
  // A member of an input with a fixed value.
  /\b(?:user_?id|uid|tenant_?id|account_?id|session_?id) ?[:=](?! ?["'`]?(?:(?:the|this|their|its|current)\b|[<{[$]))/,
];
