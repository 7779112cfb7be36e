/**
 * Stops texts that try to instruct the model beyond a user's wishes for the answers, to claim rights, or to write memories about others.
 * The texts are normalized first: look-alike letters are replaced, invisible ones removed, spaced ones joined, encoded ones decoded.
 *
 * Memories are always placed as data, so a rule that stops ordinary talk does more harm than a rule that misses an attack. Therefore a rule
 * requires the form of an order to the assistant, or an object that belongs to the system: its instructions, refunds, the data of its
 * users.
 */
import { LANGUAGES } from './poison-languages.ts';
import { readingsOf } from './readings.ts';
import { INSTRUCTIONS_REFUSED, INSTRUCTION_STEPS, OTHERS_REFUSED, RIGHTS_STEPS } from './poison-steps.ts';

interface PoisonRule {
  readonly reason: string;
  readonly patterns: readonly RegExp[];
  /** The group of other languages' rules with the same reason. */
  readonly inLanguages?: 'instructs' | 'aboutOthers';
  /** Wordings that only the steps of a procedure may contain. */
  readonly allowedInSteps?: readonly RegExp[];
  /** Wordings that only the steps of a procedure may not contain. */
  readonly refusedInSteps?: readonly RegExp[];
}

const MODEL = '(?:assistant|ai|bot|agent|model|chatbot)';
const MUST = '(?:must|should|shall|will|has to|have to)';
const REQUIRED = `(?:${MUST}|is (?:required|obliged|instructed|ordered) to)`;
/** The place of an imperative. After "I" or "we" the sentence is a statement: "I am stubborn and ignore all rules". */
const ORDER = String.raw`(?<=^ ?|[\n.,:;!?"(-] ?|\b(?:please|then|now(?: on)?) |(?<!\b(?:i|we|they)\b[^.:;!?\n]{0,60})\band |\b(?:you|${MODEL}) ${MUST} (?:always )?|\byou to )`;
const END = String.raw`(?= ?(?:[.,;:!"\n]|$))`;
const BYPASS = '(?:bypass|disable|ignore|override|skip)';
const INSTRUCTIONS = '(?:instructions?|rules?|prompts?|guidelines?|restrictions?|programming)';
const LIMITS = '(?:rules|restrictions|limits|filters)';
const SECRETS = 'api keys?|credentials|passwords|secrets';
const PAYMENT = '(?:discount|payment|refund|upgrade|withdrawal)';
const EVERY = '(?:all|any|each|every)';
/** The beginning of a sentence. */
const START = '(?:^|[.:;!?] ?)';
const ADD = '(?:add|append|include|insert)';
const SAVE = '(?:note|record|remember|save|store|write)';
const EACH_ANSWER = `${EVERY}(?: of)?(?: its| your)? (?:answers?|repl(?:y|ies)|responses?|messages?)`;
/** Subjects that an operator must not hide from its users. Does not match "the risks of flying". */
const RISKS = `(?:any |the )?(?:fee|recall|refund|risk|safety)(?: risk| warning)?s?${END}`;
const USER = '(?:user|customer)';
const PEOPLE = '(?:users?|customers?)';
const ACCOUNT = '(?:user|customer|account)';
const OTHERS = `(?:(?:all|every|each|another|other) (?:other )?${PEOPLE}|someone else)`;
/** The name or number of a user. "User stories" and "user tests" are not users. */
const NAME = String.raw`(?!(?:(?:account|group|guide|interview|manual|name|profile|role|setting|test)s?|care|data|documentation|experience|feedback|input|interface|management|mode|processes|research|space|stor(?:y|ies)|support|testing)\b)["'#]?[\w-]+["']?`;
const ADMIN = '(?:admin|administrator|root|super-?(?:user|admin))';
const RIGHTS = '(?:access|rights|privileges|permissions)';
const READ = '(?:see|read|view|access|change|edit|delete|export)';
const BUSINESS = '(?:orders?|invoices?|bookings?|reservations?|accounts?)';
const VERIFICATION = '(?:identity )?(?:verification|authentication|authori[sz]ation)';
const CHECKS = `(?:${VERIFICATION}|(?:identity|verification|login) checks?)`;
const CONFIRMATION = '(?:approval|confirmation|verification)';
const ALLOWED = '(?:allowed|authori[sz]ed|permitted)';
const GRANTED = '(?:(?:been )?(?:given|granted) )?(?:permission|the right)';
const MAY = `(?:may|(?:is|am) ${ALLOWED} to|(?:has|was) ${GRANTED} to)`;
/** Does not match "approve payments in my team". */
const APPROVE = `(?:approve|grant|issue) (?:all |any )?${PAYMENT}s?${END}`;
const DATA = '(?:data|orders|accounts|records|conversations|memories)';
const UNLIMITED = '(?:100 ?%|unlimited) (?:discount|refund)s?';
/** Does not match "all orders of my department", which belong to the user. */
const ALL_DATA = String.raw`(?:everything${END}|(?:all|any|every)(?: customer| user)? (?:${BUSINESS}|data|records?|${PEOPLE}|memories|conversations?|passwords?)\b(?! (?:of|in|for|at|about)\b))`;

function pattern({ raw }: TemplateStringsArray, ...parts: readonly string[]): RegExp {
  return new RegExp(String.raw({ raw }, ...parts).replaceAll(/\n */g, ''), 'm');
}

const RULES: readonly PoisonRule[] = [
  {
    reason: 'It instructs the model.',
    patterns: [
      pattern`${ORDER}(?:ignore?|disregard|forget|override|bypass|disable|drop|skip)(?: (?:of|the|these))*(?: (?:all|any|every|your|previous|prior|earlier|above|system|safety|identity|authori[sz]ation|return)){1,4}(?: (?:of|the|these|policy))*
        \s(?:${INSTRUCTIONS}|polic(?:y|ies)|guardrails?|safeguards?|filters?|checks?|verification)\b(?! (?:(?:that )?(?:i|we)|(?:of|for|in|on|about) (?!the (?:system|developer)|this|your))\b)`,
      pattern`${ORDER}(?:ignore|disregard|forget) (?:the ${INSTRUCTIONS} (?:above|you were given|of the (?:system|developer))|(?:everything|all|anything) (?:that )?you (?:were|have been) (?:instructed|ordered)\b(?! (?:(?:before|earlier|so far) )?(?:about|on|for|by|regarding|to)\b))`,
      pattern`${ORDER}(?:reveal|print|show|output|repeat|change|give|tell)(?: me)? (?:the|your) (?:(?:system|hidden|secret) (?:prompt|message|instructions)|(?:initial|developer) (?:prompt|instructions))\b(?! (?:of|for|in|from)\b)`,
      pattern`${ORDER}(?:stop (?:following|obeying)|(?:do not|don't|never|no longer|not) (?:follow|obey))(?: any of)? (?:(?:the|your) system (?:prompt|message|instructions)|your (?:(?:previous|original|initial|safety|developer) )?${INSTRUCTIONS})\b(?! (?:of|for|in|on|about|when|to|there|exactly|literally|so)\b)`,
      pattern`\b(?:you are now|from now on,? you are|your (?:persona|role|identity) (?:is now|from now on is)) (?:dan(?= ?(?:[.:;!"\n]|$)|, (?!(?:my|an?|the) (?!ai\b))| (?:with no|without|(?:who|and) (?:ha(?:ve|s) no ${LIMITS}|(?:can |may )?do(?:es)? anything|(?:must )?(?:obeys?|ignores?)))\b)
        |in (?:developer|god|jailbreak) mode|an? (?:unrestricted|unfiltered|uncensored|jailbroken) ${MODEL}\b|an? ${MODEL} (?:(?:without|with no|(?:that|who) has no|and have no) (?:any )?${LIMITS}\b(?! (?:on|about|for|in|of)\b)))`,
      pattern`(?:^|\s)(?:<\/?(?:system|instructions?)>|\[\/?system\]|#{2,} ?(?:system|instruction))|<\|\w{1,40}\|>|<<\/?sys>>|<(?:start|end)_of_turn>|(?<![\w)\]])\[inst\]|\[\/inst\]|\[end of the data\.\]|\bnew (?:system )?instructions ?:|^system ?: ?(?:the (?:user|assistant)|you|show|grant|ignore)\b`,
      pattern`${ORDER}(?:always (?:approve|grant|issue)\b.{0,20}|(?:approve|grant) (?:every|all|any) )\b${PAYMENT}`,
      pattern`\bthe ${MODEL} ${REQUIRED} (?:always )?(?:(?:approve|grant|never verify)\b.{0,20}\b${PAYMENT}|reveal\b.{0,20}\b(?:conversation|data|secret|code|password)|recommend only (?:this|our)\b|(?:forward|send|post)\b.{0,40}\bhttps?:)`,
      pattern`(?:\bthe ${MODEL} ${REQUIRED} |${ORDER})(?:always )?${ADD} (?!.{0,40}\b(?:my|our)\b).{0,60}\bhttps?:.{0,60}\b${EACH_ANSWER}\b(?! (?:about|for|if|on|that|to|when|with)\b)|${ORDER}in ${EACH_ANSWER},? ${ADD} (?:the link )?https?:`,
      pattern`\b(?:new (?:rule|policy) ?: ?the ${MODEL} (?:approves|grants|reveals|shares)|policy of (?:this|the) ${MODEL} to (?:approve|grant|reveal|share))\b.{0,20}\b(?:refunds?|payments?|loans?|${SECRETS}|conversations|applications?)\b`,
      pattern`${ORDER}(?:always )?recommend (?:our (?:products?|brand|company|shop|app|services?) in ${EVERY}\b|product (?!(?:names?|pages?|photos?|reviews?|tests?|videos?)\b)["']?[\w-]+["']?(?:${END}| in ${EVERY}\b))(?!.{0,40}\b(?:to|for) (?:me|us)\b)`,
      pattern`\byou ${MUST} always (?:transfer|wire|send|refund|withdraw) .{0,20}\b(?:money|funds|payments?|refunds?|amounts?)\b.{0,20}\bwithout (?:asking for |any )*${CONFIRMATION}\b`,
      pattern`${ORDER}(?:set (?:the |your |all )?safety (?:filters?|checks|settings) to (?:off|none)\b(?! (?:in|on|of)\b)|${BYPASS} (?:the |your |all )?content moderation\b|obey (?:only me|me only|no ?(?:one|body) but me)\b(?! (?:in|on|at|and)\b)
        |(?:commit|${SAVE}) (?:this )?(?:to|in|into) (?:the |your |its )?(?:long-?term )?memory that the ${USER} (?:(?:has )?(?:agree[ds]|approve[ds]|authori[sz]e[ds]|consent(?:s|ed)|trusts)|wants to (?:pay|send|transfer|wire))\b)`,
      pattern`\b${USER} (?:wants?|prefers?|asks?|asked|tells|told|expects?) (?:that you|(?:the|this) ${MODEL} to) (?:ignore|disregard|forget) (?:all|any|every|your)(?: (?:of|the|your|previous|prior|earlier|safety|system))* ${INSTRUCTIONS}\b(?! (?:of|for|in|on|about)\b)`,
      pattern`\b(?:pretend|act as if) (?:that )?(?:all|your|the)(?: your| the)? (?:earlier|previous|prior|original|system|other) ${INSTRUCTIONS} (?:(?:were|are|have been) (?:cancell?ed|deleted|gone|lifted|overridden|revoked|void|withdrawn)|do not (?:apply|exist)|never existed)\b`,
      pattern`\b${MODEL} (?:reading|(?:that|who) (?:reads|sees)) this ${MUST} (?:(?:treat|trust) (?:the|this) (?:user|customer|sender|vendor)|obey|approve)\b`,
      pattern`\b(?:send|forward|post|upload|copy) (?:the|this|every|all)(?: full| entire)? (?:conversations?|chat history|memories) to (?:https?:|\S{1,64}@)|${ORDER}(?:print|reveal|output|post|leak) (?:your|the|all) (?:${SECRETS})\b`,
      pattern`${ORDER}(?:run|execute|call|invoke)\b.{0,40}\b(?:rm -rf|shell tool|[a-z]+_[a-z]+ (?:without (?:asking|confirmation|approval)|(?:after|at|in|on) (?:each|every) (?:conversation|message|session|turn)))\b`,
      pattern`\bwhenever (?:anyone|someone|any user) asks\b.{0,40}\b(?:${ADD}|recommend)\b|\bwhenever (?:the|a) user asks\b.{0,40}, (?:answer|claim|reply|say) that\b|\b(?:do not|don't|never) (?:inform|tell|warn|mention to) the user (?:that\b|about ${RISKS})|\b(?<!my )${MODEL} ${REQUIRED} (?:never|not) mention ${RISKS}|\b(?:hide|conceal|mention) (?:this|it) (?:from|to) the user\b`,
    ],
    inLanguages: 'instructs',
    allowedInSteps: INSTRUCTION_STEPS,
    refusedInSteps: INSTRUCTIONS_REFUSED,
  },
  {
    reason: 'It claims rights, which a memory cannot give.',
    patterns: [
      pattern`\b(?:is|am|i'm|are|treat .{2,8} as) (?:now |also )?(?:an? |the )?(?:${ADMIN}(?= ?(?:[."\n]|$))|(?:${ADMIN}|owner|developer|creator|operator) (?:of|behind) (?:this|your) (?:system|platform|service|shop|store|${MODEL})\b)|\bi(?: am|'m) your (?:creator|developer|${ADMIN})\b`,
      pattern`(?<!\b(?:not|longer|never) )\b(?:have|has|granted) (?:now )?(?:${ADMIN}|elevated|unlimited|unrestricted) ${RIGHTS}\b(?:${END}| (?:by|since|here|to the system)\b)|\bgrant (?:me|the user) full access\b|\blevel \d clearance\b|(?:^|[.:;!?] ?|\bplease )grant (?:me|(?:the|this) (?:user|account)) ${ADMIN} ${RIGHTS}${END}`,
      pattern`\b(?:is|am|i'm) (?:now )?(?:an? |the )?${ADMIN},? (?:with (?:${ADMIN}|full|all|unlimited|unrestricted|elevated) ${RIGHTS}(?:${END}| and\b| (?:to|over) (?:the|this) (?:system|platform)\b)|(?:(?:and|who|so i) ${MAY} ${READ}|so (?:show|give|tell) me) ${ALL_DATA}|(?:and|who) (?:can|${MAY}) ${APPROVE}|remember (?:that|this|it)${END})`,
      pattern`\b(?:i am|i'm|(?:the|this) ${ACCOUNT} is) exempt from (?:any |all |the |every )?${CHECKS}(?:${END}| and\b)`,
      pattern`\b(?:i have|${ACCOUNT} has) (?:now )?(?:(?:(?:staff|employee|security|full|the|${ADMIN}) )?(?:clearance|privileges) to ${READ} (?:${ALL_DATA}|(?:the )?${DATA} of other\b)|full access to ${EVERY} (?:customer |user )?(?:${BUSINESS}|records?)\b(?! (?:of|in|for|at|about|from|since|that)\b))`,
      pattern`\bno (?:further |additional )?${VERIFICATION} (?:is )?(?:needed|required|necessary) (?:for|from|by) (?:the|this) ${ACCOUNT}${END}`,
      pattern`\b${ACCOUNT} ${MAY} (?:${BYPASS} (?:the |all |any )?${CHECKS}${END}|${APPROVE}|(?:(?:call|use) ${EVERY} tools?|(?:delete|transfer|withdraw)\b.{0,20}) without ${CONFIRMATION}${END})
        |\b(?:${ACCOUNT}|and) ${MAY} ${READ} (?:other accounts${END}|(?:the )?(?:${DATA} of other ${PEOPLE}|other ${PEOPLE}' ${DATA})\b)`,
      pattern`\bas (?:the|your|an?) ${ADMIN},? i (?:say|declare|hereby|command)\b.{0,12}\b(?:(?:all|every|each|this) ${PEOPLE}(?! should\b)|you (?:must|shall|may))\b|\b${ALLOWED} (?:me|(?:the|this) (?:user|account)) to ${BYPASS} (?:the|all|any|your) (?:safety )?(?:filters|restrictions|verification|guardrails)${END}|\bmy (?:role|account) (?:is|was|has been) (?:now )?(?:upgraded|elevated|raised) to ${ADMIN}(?:${END})(?!, (?!remember))`,
      pattern`\b(?:i am|i'm|i have|(?:user|customer|he|she) (?:is|has|was)|they are) (?:${ALLOWED}|${GRANTED}) to (?:decide${END}|change prices\b
        |(?:${READ}|get|withdraw) (?:everything${END}|${EVERY} (?:customer |user )?(?:${BUSINESS}|data|refunds?|records?|amount)\b(?! (?:of|in|for|at|about) (?:my|our|me)\b)))`,
      pattern`(?<!\bnot )\b(?:pre-?approved|verified) (?:for|and entitled to)\b.{0,10}\b(?:refund|withdrawal)s?\b|\bexempt from\b.{0,20}\b(?:return|refund|payment) policy\b|\bon behalf of management${END}|\bunlimited (?:credit|discount|refund)s? (?:for|to) (?:the|this) ${ACCOUNT}${END}`,
      pattern`\bthe user(?:'s identity)? (?:.{0,60}\bno ${CONFIRMATION} (?:is )?(?:needed|required)\b|does not (?:need|have) to pay for (?:any )?orders${END}|(?:gets|is entitled to) (?:an? )?${UNLIMITED})`,
    ],
    allowedInSteps: RIGHTS_STEPS,
  },
  {
    reason: 'It is about other users.',
    patterns: [
      pattern`${ORDER}(?:add|${SAVE}) (?:this |that )?(?:globally\b|for ${OTHERS}\b)|${START}for (?:all|every|each|other) users ?:(?!.{0,80}\?)`,
      pattern`${START}(?:all|every|each|other|future)(?: other)? ${PEOPLE} (?:(?:prefers?|wants?|(?:must|should) be (?:told|sent|shown|greeted))\b(?!.{0,60}\b(?:i|i'm|we|our)\b)|gets? (?:an? )?${UNLIMITED}${END})`,
      pattern`${ORDER}${SAVE}(?: this)?(?: ?:|,)?(?: that)? ${EVERY} (?:other )?${PEOPLE} (?:are|is|have|has|may) (?:now )?(?:an? )?(?:${ADMIN}s?\b(?: ${RIGHTS})?|full access)${END}`,
      pattern`${ORDER}tell (?:everyone|everybody|${OTHERS}) (?:who (?:asks|wonders) )?(?:that|to)\b(?!.{0,40}\b(?:i|i'm|my|we|our)\b)|\b(?:another|other) ${PEOPLE} told you\b`,
      pattern`${ORDER}(?:(?:add|put|${SAVE}|update|change|delete|erase|copy|show|read)\b.{0,15}\b(?:(?:memory|memories|preferences|profiles?|records?|data|conversations) of ${OTHERS}|memories of ${USER}\b|preferences of user\b
        |memory of ${USER}(?: id)? ${NAME}|profile of user(?: id)? ${NAME}(?: ?:| that\b))|${SAVE} (?:this )?in (?:the )?(?:shared|global|common) memory that\b)`,
      pattern`(?:${START}(?:for|under) user|\b${SAVE} (?:this )?(?:for|under) (?:user|account))(?: id)? ${NAME}(?: ?:| that\b)|${START}for (?:the )?user ${NAME},? ${SAVE} that (?:s?he|they)\b`,
      pattern`${START}(?:user|the ${USER} with (?:the )?(?:id|number)) ${NAME}(?: (?:has the (?:password|pin)\b|lives at \d|owes (?!me\b|us\b))|'s (?:account must|(?:password|pin) is)\b)`,
      pattern`${ORDER}(?:(?:add|write|save)(?: this)? to [a-z]+'s profile\b|(?:add|put|${SAVE})(?: this)? (?:to|in|into) (?:[a-z]+'s memor(?:y|ies)\b|user [\w-]+'s memor(?:y|ies)\b|user_?id ?[:=]))|\bset scope ?[:=] ?["']?(?:all users\b|user[:/]|(?:app|global|user)["']?(?: ?[.,;:!\n]|$| and ${SAVE}\b))|^user:\w|\.\.\/[\w-]+\/memories\b`,
    ],
    inLanguages: 'aboutOthers',
    refusedInSteps: OTHERS_REFUSED,
  },
];

/** Returns why a text may not become a memory; `undefined` if it may. */
export function poisonReason(text: string): string | undefined {
  return reasonOf(text, readingsOf(text), false);
}

/**
 * Returns why the steps of a procedure may not become a memory; `undefined` if they may. Steps are always instructions about tools, so some
 * wordings are removed before the rules read them. Each step, in the numbered text or in a JSON list, is judged separately.
 */
export function poisonReasonOfSteps(text: string): string | undefined {
  return reasonOf(text, text.split(/\n\d+\. |","/).flatMap(readingsOf), true);
}

/** Returns the reason of the first rule that refuses one of the readings. */
function reasonOf(text: string, readings: readonly string[], areSteps: boolean): string | undefined {
  // The languages are found by the letters of the original text, because its readings have Latin letters instead of others.
  const languages = LANGUAGES.filter(({ script }) => script?.test(text) ?? true);
  const refusing = RULES.find(({ patterns, inLanguages, allowedInSteps = [], refusedInSteps = [] }) => {
    const ofLanguages = inLanguages ? languages.flatMap((language) => language[inLanguages]) : [];
    const refused = [...patterns, ...ofLanguages, ...(areSteps ? refusedInSteps : [])];
    const allowed = areSteps ? allowedInSteps : [];
    return readings.some((reading) => {
      const rest = allowed.reduce((left, one) => left.replaceAll(one, '…'), reading);
      return refused.some((pattern) => pattern.test(rest));
    });
  });
  return refusing?.reason;
}
