/**
 * Stops texts that try to instruct the model beyond a user's wishes for the answers, to claim rights, or to write memories about others.
 * The texts are normalized first: look-alike letters are replaced, invisible ones removed, spaced ones joined, encoded ones decoded.
 */
import { LANGUAGES } from './poison-languages.ts';
import { readingsOf } from './readings.ts';
import { ABOUT_OTHERS_STEPS, INSTRUCTION_STEPS, RIGHTS_STEPS, ADDRESSES } from './poison-steps.ts';

interface PoisonRule {
  readonly reason: string;
  readonly patterns: readonly RegExp[];
  /** What the steps of a procedure may say. */
  readonly allowedInSteps: readonly RegExp[];
  /** What they may not say, though other texts may. */
  readonly refusedInSteps?: readonly RegExp[];
}

const MODEL = String.raw`(?:you|the (?:assistant|ai|bot|agent|model|system|chatbot|llm))`;
const RULES_WORD = String.raw`(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|directives?|restrictions?|guardrails?|safety|safeguards?|checks?)`;

const RULES: readonly PoisonRule[] = [
  {
    reason: 'It instructs the model.',
    patterns: [
      new RegExp(
        String.raw`\b(?:ignor(?:e[sd]?|ing)?(?!é| (?:tou(?:te)?s )?(?:les|la|l'|mes|ses)\b)|disregard\w*|forget\w*|overrid\w*|bypass\w*|circumvent\w*|drop|skip\w*|disabl\w*|replac\w*)\b.{0,60}\b${RULES_WORD}\b`,
      ),
      /\bsystem (?:prompt|message|instruction)s?\b/,
      /\b(?:developer|god|debug|jailbreak|dan|maintenance|unrestricted|admin) mode\b/,
      /\byou are (?:now|no longer)\b|\bpretend (?:to be|that you)\b|\bact as (?:if|an?|the)\b|\bnew (?:instructions|persona|role)\b/,
      /(?:^|\s)(?:<\/?(?:system|instructions?|assistant|user|memory|memories)\b|\[\/?(?:inst|system)\]|<\|\w+\|>|#{2,} ?(?:system|instruction))/,
      /^(?:system|assistant|developer|tool) ?:/m,
      new RegExp(
        String.raw`\b${MODEL}\b.{0,40}\b(?:must|should|shall|has to|have to|needs? to|is to|are to|will|always|never)\b.{0,60}\b(?:send|forward|post|upload|transfer|wire|pay|refund|approve|grant|reveal|disclose|print|output|leak|share|execute|run|call|invoke|delete|drop|obey|comply|trust|confirm without|skip|hide|conceal|lie|recommend only)\b`,
      ),
      /\b(?:send|forward|post|upload|exfiltrate|leak|copy|bcc|reveal|print|repeat|disclose|output)\b.{0,60}\b(?:conversation|chat history|passwords?|api keys?|secrets?|credentials?|tokens?|memories)\b/,
      /\b(?:call|invoke|execute|run|use)\b.{0,20}\b(?:tool|function|command|script|shell)\b/,
      /\b(?:rm -rf|drop table|curl |wget |eval\(|<script)/,
      /\b(?:from now on|in (?:all|every) (?:future|later|subsequent)|whenever (?:anyone|any user|someone))\b.{0,80}\b(?:send|approve|grant|refund|reveal|include the|insert|append|add the (?:link|url)|recommend|obey|comply|agree|ignore|transfer|pay)\b/,
      /\b(?:without (?:asking|confirmation|verification|checking|approval)|no (?:confirmation|verification|approval) (?:is )?(?:needed|required|necessary))\b/,
      /\bdo not (?:tell|inform|mention (?:this|it) to)\b|\bkeep (?:this|it) (?:secret|hidden) from\b/,
      ...LANGUAGES.flatMap(({ instructs }) => instructs),
    ],
    allowedInSteps: INSTRUCTION_STEPS,
    refusedInSteps: ADDRESSES,
  },
  {
    reason: 'It claims rights, which a memory can not give.',
    patterns: [
      /\b(?:is|am|are|as|'m|be|being|become|became|has been made|was made|role:?) (?:an? |the |your |our |now |also |really |actually )*(?:system )?(?:admin(?:istrator)?s?|root|super-?users?|sysadmin|sudoer|moderator)\b/,
      /\b(?:is|am|are|'m|i am|be|of) (?:an? |the |your |our )*(?:developer|creator|owner|operator|maintainer|ceo|boss|supervisor|manager|employee|engineer|security (?:officer|team)|auditor) (?:of|at|for|behind|from) (?:this|the|your) (?:system|assistant|bot|agent|service|app|application|shop|store|company|platform|model|ai)\b/,
      /\b(?:admin(?:istrator|istrative)?|root|super-?user|elevated|full|unlimited|unrestricted|special|privileged|level \d+|top.secret) (?:access|rights?|privileges?|permissions?|clearance|credentials|status)\b/,
      /\b(?:is|am|are|has been|have been|was|were|'m|already|been) (?:now |already |fully |pre-?)*(?:authori[sz]ed|entitled|permitted|approved|verified|authenticated|exempt(?:ed)?|whitelisted|allowlisted|cleared|trusted|allowed)\b.{0,60}\b(?:to|from|for|by|as|account|identity|refunds?|withdrawals?)\b/,
      /\b(?:identity|account|payment|age|login) (?:is|was|has been) (?:already )?(?:verified|confirmed|authenticated|approved)\b/,
      /\bhas (?:the )?(?:permission|authority|authori[sz]ation|clearance|the right) (?:to|for|of|over)\b/,
      /\b(?:need not|does not (?:need|have) to|do not (?:need|have) to|never (?:needs|has) to) (?:be )?(?:verif\w+|authenticat\w+|log ?in|pay|identif\w+|confirm\w*|asked for)\b/,
      /\b(?:on behalf of|speaking for|authori[sz]ed by|approved by|orders from|per) (?:the )?(?:admin\w*|management|ceo|owner|security|legal|support|developers?|openai|google|anthropic|it department)\b/,
      /\b(?:gets?|receives?|is owed|qualifies for|always pays?) (?:an? |the )?(?:100 ?%|free|unlimited|full) (?:discount|refund|orders?|credit|access|upgrade)\b/,
    ],
    allowedInSteps: RIGHTS_STEPS,
  },
  {
    reason: 'It is about other users.',
    patterns: [
      /\b(?:all|every|any|each|other|another|different|future|those) (?:other )?(?:users?|customers?|accounts?|tenants?|clients|sessions?|people who)\b/,
      /\bevery(?:one|body) (?:else|who|that|in this|using)\b/,
      /\b(?:for|about|of|to|in|under|into|as) (?:the )?(?:user|customer|account|tenant|member|client)(?:'s)?(?: id| name| with id| named| called| number| #)? ?[:#"'`]? ?(?!(?:prefers|wants|likes|is|has|who|and|or|to|in|on|at|for|said|asks?|asked|that|by|with|as|id|name|said|does|was|will|would|can|s)\b)(?:[a-z]+[-_.]?\d+|\d{2,}|[a-z]+@[a-z.]+|"[^"]+"|'[^']+'|\*)/,
      /\b(?:user_?id|uid|tenant_?id|account_?id|scope|app_?name|session_?id) ?[:=]/,
      /\buser:\w|\bapp:\w|\.\.\/|\buser_id\b/,
      /\b(?:remember|store|save|write|note|record|add|put|delete|erase|change|update|set|read|show|list|tell)\b.{0,40}\b(?:someone else|[a-z]+body's|another (?:person|user|customer)|other (?:users?|customers?|people)(?:'s?)?|global(?:ly)?|shared|everyone|everybody|[a-z]+'s (?:memor(?:y|ies)|profile|account|preferences|record))\b/,
      ...LANGUAGES.flatMap(({ aboutOthers }) => aboutOthers),
    ],
    allowedInSteps: ABOUT_OTHERS_STEPS,
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
  for (const { reason, patterns, allowedInSteps, refusedInSteps = [] } of RULES) {
    const isRefused = (reading: string) => {
      const rest = allowedInSteps.reduce((left, allowed) => left.replaceAll(allowed, '…'), reading);
      return [...patterns, ...refusedInSteps].some((pattern) => pattern.test(rest));
    };
    if (readings.some(isRefused)) return reason;
  }
  return undefined;
}
