/**
 * Wordings that the steps of a procedure need: they name tools, say what to check, and name the members of a tool's input. The rules do not
 * read them. All patterns are for normalized texts, and for one step at a time.
 */

const SUBJECT = String.raw`(?:the|this|that|their|its|an?) (?:[\w'-]+ ){1,2}?`;
/** The rest of a clause, up to a word that would begin an order in it. */
const CLAUSE_REST = String.raw`(?:(?!\b(?:then|tell|say|treat|grant|assume|consider|note|remember|report|state|claim|and|they|he|she|because|already|always|now|any|which)\b)[^.,;:!?\n"])*`;
const ID = String.raw`\b(?:user_?id|uid|tenant_?id|account_?id|session_?id)\b`;

export const INSTRUCTION_STEPS: readonly RegExp[] = [
  /\b(?:tool|function|command|script)s?\b(?! ?:)/g,
  /\b(?:you|the (?:assistant|agent|model)) (?:must|should|has to|have to|needs? to) (?:call|invoke|run|execute)\b/g,
  // "check" as a verb is no check that is left out.
  /(?<=(?:^|[.,;:"(]|\b(?:and|then|to)) ?)(?:double-?|re-?)?check\b/g,
  /\breplac\w* (?!.{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|directives?|restrictions?|guardrails?|safety|safeguards?|checks?|validations?)\b)/g,
  /\b(?:never|do not|don't)(?! (?:stop|wait|hesitate|pause|delay)\b)(?: (?!(?:and|but|just|or)\b)[\w-]+){1,8} without (?:asking|confirmation|verification|checking|approval)\b/g,
];

export const RIGHTS_STEPS: readonly RegExp[] = [
  new RegExp(String.raw`\b(?:verify|check|determine|find out|see) (?:that|if|whether) ${CLAUSE_REST}`, 'g'),
  // An order to make something true looks like a check, so only what no order of the model can give is left out.
  new RegExp(
    String.raw`\b(?:confirm|ensure|make sure) (?:that )?${SUBJECT}(?:is|are|was|were|has|have)(?: been)? (?:authori[sz]ed|entitled|permitted|allowed|eligible|verified|authenticated|permission|the right)\b`,
    'g',
  ),
  new RegExp(
    String.raw`\b(?:if|whether|unless|until|when|once|after|before) ${SUBJECT}(?:is|are|was|were|has|have|does)\b${CLAUSE_REST}`,
    'g',
  ),
];

export const ABOUT_OTHERS_STEPS: readonly RegExp[] = [
  // A member of an input without a value of its own.
  new RegExp(String.raw`${ID}(?! ?[:=])`, 'g'),
  new RegExp(String.raw`${ID} ?[:=] ?(?=["'\x60]?(?:(?:the|this|their|its|current)\b|[<{[$]))`, 'g'),
  /\b(?:all|every|any|each|other) (?:other )?(?:accounts?|sessions?)(?= (?:of|that belong to) (?:the|this) (?:same )?(?:user|customer|caller)\b)/g,
  /\bthe (?:user|customer|caller|client)'s\b/g,
];

/** An address in a step is a place to send data to: the model is asked to leave out the values of its one case. */
export const ADDRESSES: readonly RegExp[] = [/https?:\/\/|[^\s@]{1,64}@[^\s@]{2}/];
