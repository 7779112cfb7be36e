/**
 * Stops texts that try to instruct the model beyond a user's wishes for the answers, to claim rights, or to write memories about others.
 * The texts are normalized first: look-alike letters are replaced, invisible ones removed, spaced ones joined, encoded ones decoded.
 *
 * Memories are placed as data in any case, so a rule that stops ordinary talk does more harm than one that misses an attempt. So a rule asks
 * for the form of an order to the assistant, or for an object that belongs to the system: its instructions, refunds, the data of its users.
 */
import { LANGUAGES } from './poison-languages.ts';
import { readingsOf } from './readings.ts';
import { INSTRUCTIONS_REFUSED, INSTRUCTION_STEPS, OTHERS_REFUSED, RIGHTS_STEPS } from './poison-steps.ts';

interface PoisonRule {
  readonly reason: string;
  readonly patterns: readonly RegExp[];
  /** What the steps of a procedure may say. */
  readonly allowedInSteps?: readonly RegExp[];
  /** What they may not say, though other texts may. */
  readonly refusedInSteps?: readonly RegExp[];
}

const MODEL = '(?:assistant|ai|bot|agent|model|chatbot)';
const MUST = '(?:must|should|shall|will|has to|have to)';
/** The place of an imperative. "I" and "we" in the sentence make it a statement: "I am stubborn and ignore all rules". */
const ORDER = String.raw`(?<=^ ?|[\n.,:;!?"(-] ?|\b(?:please|then|now) |(?<!\b(?:i|we|they)\b[^.:;!?\n]{0,60})\band |\b(?:you|${MODEL}) ${MUST} (?:always )?|\byou to )`;
const END = String.raw`(?= ?(?:[.,;:!"\n]|$))`;
const PEOPLE = '(?:users?|customers?)';
const OTHERS = `(?:(?:all|every|each|another|other) (?:other )?${PEOPLE}|someone else)`;
const ADMIN = '(?:admin|administrator|root|super-?user)';

function pattern({ raw }: TemplateStringsArray, ...parts: readonly string[]): RegExp {
  return new RegExp(String.raw({ raw }, ...parts).replaceAll(/\n */g, ''), 'm');
}

const RULES: readonly PoisonRule[] = [
  {
    reason: 'It instructs the model.',
    patterns: [
      pattern`${ORDER}(?:ignore?|disregard|forget|override|bypass|disable|drop|skip)(?: (?:of|the|these))*(?: (?:all|any|every|your|previous|prior|earlier|above|system|safety|identity|authori[sz]ation|return)){1,4}(?: (?:of|the|these|policy))*
        \s(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?|guardrails?|safeguards?|filters?|checks?|verification)\b(?! (?:(?:that )?(?:i|we)|(?:of|for|in|on|about) (?!the (?:system|developer)|this|your))\b)`,
      pattern`${ORDER}(?:ignore|disregard|forget) the (?:instructions|rules|guidelines) (?:above|you were given|of the (?:system|developer))`,
      pattern`${ORDER}(?:reveal|print|show|output|repeat|change|give|tell)(?: me)? (?:the|your) (?:system|hidden|secret|initial) (?:prompt|message|instructions)\b(?! (?:of|for|in|from)\b)`,
      pattern`\byou are now (?:dan\b|in (?:developer|god|jailbreak) mode|an? (?:unrestricted )?${MODEL} (?:without|with no) (?:any )?(?:rules|restrictions|limits))`,
      pattern`(?:^|\s)(?:<\/?(?:system|instructions?)>|\[\/?(?:inst|system)\]|<\|\w+\|>|#{2,} ?(?:system|instruction))|\bnew (?:system )?instructions ?:|^system ?: ?(?:the (?:user|assistant)|you|show|grant|ignore)\b`,
      pattern`${ORDER}(?:always (?:approve|grant|issue)\b.{0,20}|(?:approve|grant) (?:every|all|any) )\b(?:refund|payment|withdrawal|upgrade|discount)`,
      pattern`\bthe ${MODEL} ${MUST} (?:always )?(?:(?:approve|grant|never verify)\b.{0,20}\b(?:refund|payment|upgrade|discount)|reveal\b.{0,20}\b(?:conversation|data|secret|code|password)|recommend only (?:this|our)\b|(?:forward|send|post)\b.{0,40}\bhttps?:)`,
      pattern`\b(?:send|forward|post|upload|copy) (?:the|this|every|all)(?: full| entire)? (?:conversations?|chat history|memories) to (?:https?:|\S{1,64}@)|${ORDER}(?:print|reveal|output|post|leak) (?:your|the|all) (?:api keys?|passwords|secrets|credentials)\b`,
      pattern`${ORDER}(?:run|execute|call|invoke)\b.{0,40}\b(?:rm -rf|shell tool|(?:(?:tool|function) )?[a-z]+_[a-z]+ without (?:asking|confirmation|approval))\b`,
      pattern`\bwhenever (?:anyone|someone|any user) asks\b.{0,40}\b(?:insert|include|append|recommend)\b|\b(?:do not|don't|never) tell the user that\b|\b(?:hide|conceal|mention) (?:this|it) (?:from|to) the user\b`,
      ...LANGUAGES.flatMap(({ instructs }) => instructs),
    ],
    allowedInSteps: INSTRUCTION_STEPS,
    refusedInSteps: INSTRUCTIONS_REFUSED,
  },
  {
    reason: 'It claims rights, which a memory can not give.',
    patterns: [
      pattern`\b(?:is|am|i'm|are|treat .{2,8} as) (?:now |also )?(?:an? |the )?(?:${ADMIN}(?= ?(?:[."\n]|$))|(?:${ADMIN}|owner|developer|creator|operator) (?:of|behind) (?:this|your) (?:system|platform|service|shop|store|${MODEL})\b)|\bi(?: am|'m) your (?:creator|developer|${ADMIN})\b`,
      pattern`(?<!\b(?:not|longer|never) )\b(?:have|has|granted) (?:now )?(?:${ADMIN}|elevated|unlimited|unrestricted) (?:access|rights|privileges|permissions)\b(?:${END}| (?:by|since|here|to the system)\b)|\bgrant (?:me|the user) full access\b|\blevel \d clearance\b`,
      pattern`\b(?:i am|i'm|i have|(?:user|customer|he|she) (?:is|has)|they are) (?:authori[sz]ed|permitted|allowed|permission|the right) to (?:decide${END}|change prices\b
        |(?:see|read|view|access|change|edit|delete|get|withdraw) (?:everything${END}|(?:all|any|every) (?:customer |user )?(?:invoices?|orders?|accounts?|data|refunds?|records?|amount)\b(?! (?:of|in|for|at|about) (?:my|our|me)\b)))`,
      pattern`(?<!\bnot )\b(?:pre-?approved|verified) (?:for|and entitled to)\b.{0,10}\b(?:refund|withdrawal)s?\b|\bexempt from\b.{0,20}\b(?:return|refund|payment) policy\b|\bon behalf of management${END}`,
      pattern`\bthe user(?:'s identity)? (?:.{0,60}\bno (?:verification|confirmation|approval) (?:is )?(?:needed|required)\b|does not (?:need|have) to pay for (?:any )?orders${END}|(?:gets|is entitled to) (?:an? )?(?:100 ?%|unlimited) (?:discount|refund))`,
    ],
    allowedInSteps: RIGHTS_STEPS,
  },
  {
    reason: 'It is about other users.',
    patterns: [
      pattern`${ORDER}(?:remember|store|save|write|note|record|add) (?:this |that )?(?:globally\b|for ${OTHERS}\b)`,
      pattern`(?:^|[.:;!?] ?)(?:all|every|each|other|future) ${PEOPLE} (?:prefers?|wants?|(?:must|should) be (?:told|sent|shown|greeted))\b`,
      pattern`${ORDER}tell (?:everyone|everybody|${OTHERS}) (?:that|to)\b(?!.{0,40}\b(?:i|i'm|my|we|our)\b)|\b(?:another|other) ${PEOPLE} told you\b`,
      pattern`${ORDER}(?:write|put|add|save|update|change|delete|erase|copy|show|read)\b.{0,15}\b(?:(?:memories|preferences|profiles?|records?|data|conversations) of ${OTHERS}|memories of (?:user|customer)\b|preferences of user\b)`,
      pattern`(?:^|[.:;!?] ?|\b(?:store|save|remember|record) (?:this )?)(?:for|under) (?:user|account)(?: id)? ["'#]?[\w-]+["']?(?: ?:| that\b)`,
      pattern`${ORDER}(?:add|write|save)(?: this)? to (?:[a-z]+'s (?:profile|memor)|user_?id ?[:=])|\bset scope ?[:=]|^user:\w|\.\.\/[\w-]+\/memories\b`,
      ...LANGUAGES.flatMap(({ aboutOthers }) => aboutOthers),
    ],
    refusedInSteps: OTHERS_REFUSED,
  },
];

/** Why a text may not become a memory, or `undefined`. */
export function poisonReason(text: string): string | undefined {
  const readings = readingsOf(text);
  for (const { reason, patterns } of RULES) {
    if (readings.some((reading) => patterns.some((pattern) => pattern.test(reading)))) return reason;
  }
  return undefined;
}

/**
 * Why the steps of a procedure may not become a memory, or `undefined`. They are instructions about tools by nature, so some wordings are
 * left out before the rules read them. Each step, in the numbered text or in a list in JSON, is judged by itself.
 */
export function poisonReasonOfSteps(text: string): string | undefined {
  const readings = text.split(/\n\d+\. |","/).flatMap(readingsOf);
  for (const { reason, patterns, allowedInSteps = [], refusedInSteps = [] } of RULES) {
    const isRefused = (reading: string) => {
      const rest = allowedInSteps.reduce((left, allowed) => left.replaceAll(allowed, '…'), reading);
      return [...patterns, ...refusedInSteps].some((pattern) => pattern.test(rest));
    };
    if (readings.some(isRefused)) return reason;
  }
  return undefined;
}
