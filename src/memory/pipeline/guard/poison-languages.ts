/**
 * The rules for languages other than English. Everyday sentences also ignore rules, give orders and address all customers. So a rule
 * requires the form of an order to the assistant (an imperative, "you must", "you are now", "the assistant must"), and an object that only
 * an attack names: its instructions, an approval, an address, a role without limits, the data of other users.
 */
import { toLatin } from './readings.ts';

/** The rules of a language. */
export interface LanguageRules {
  /** Matches a letter that every text of the language contains. */
  readonly script?: RegExp;
  readonly instructs: readonly RegExp[];
  readonly aboutOthers: readonly RegExp[];
}

/** The beginning or the end of a word, because `\b` supports only English letters. */
const EDGE = String.raw`(?:(?<![\p{L}\p{N}])(?=[\p{L}\p{N}])|(?<=[\p{L}\p{N}])(?![\p{L}\p{N}]))`;

/**
 * Creates a pattern from lines. {@link EDGE} replaces `\b`. Normalized texts have Latin letters instead of similar Cyrillic letters, and no
 * marks, so the pattern is normalized too.
 */
function pattern({ raw }: TemplateStringsArray, ...parts: readonly string[]): RegExp {
  const source = String.raw({ raw }, ...parts).replaceAll(/\n */g, '');
  const words = source.replaceAll(String.raw`\b`, EDGE).replaceAll(/\p{Mn}/gu, '');
  return new RegExp(words.replaceAll(/\p{Script=Cyrillic}/gu, toLatin), 'u');
}

/** The beginning of a clause, where "ignora" is an imperative. After a comma or "and" it may describe what someone does. */
const CLAUSE = String.raw`(?<=^ ?|[\n.:;!?¡¿"«(—-] ?|\b(?:bitte|por favor|hola|ahora|maintenant|veuillez|bonjour),? )`;

/** An email address or a link, to which data would be sent. */
const ADDRESS = String.raw`(?:[\p{L}\p{N}]@[\p{L}\p{N}]|https?:)`;

/**
 * The end of a noun that is also the end of its clause, or is followed by one of the words: the rules "of my diet" are not the assistant's.
 */
function endBefore(words: string): string {
  return String.raw`(?! ?[\p{L}\p{N}])|(?= (?:${words})\b)`;
}

const DE_RULES =
  '(?:sicherheits|system)?(?:anweisungen|regeln|vorgaben|instruktionen|richtlinien|einschränkungen|prompts?|befehle)';
const DE = {
  rules: DE_RULES,
  theRules: String.raw`(?: (?:mehr|ab|an|dir|jetzt|sofort|heute|einfach|bitte|\p{L}{0,15}en?)){1,8} ${DE_RULES}`,
  fromNow: '(?:ab (?:jetzt|sofort|heute)|von (?:nun|jetzt|heute) an|künftig|in zukunft)',
  must: '(?:musst|sollst|wirst|darfst)',
  all: '(?:alle[nr]?|jede[mnrs]?|(?:den |der |des )?andere[nr]?)(?: andere[nr]?)?',
  people: String.raw`(?:nutzer|benutzer|kunde|anwender|user)\p{L}*\b(?!.{0,40}\b(?:(?:ich|wir)\b|mein|unser))`,
};

const GERMAN: LanguageRules = {
  instructs: [
    pattern`(?:\b(?:ignoriere?|vergiss|missachte|(?:ignorieren|vergessen|missachten) (?:sie|wir)|halte dich nicht|befolge nicht)(?<!\bich\b[^,.:;!?\n]{0,60})
      |${CLAUSE}(?:ignoriert|vergesst|missachtet))\b
      (?:${DE.theRules}(?:${endBefore('und|oder|die|des systems|der entwickler|von oben')})|,? alles(?: bisherige| obige| vorherige|,? was (?:man )?(?:dir|ihnen)\b))
      |\bdu ${DE.must}${DE.theRules} (?:ignorieren|vergessen|missachten)\b`,
    pattern`\b(?:${DE.fromNow} ${DE.must} du|du ${DE.must} (?:${DE.fromNow}|immer|stets)|(?:der assistent|die ki) (?:muss|soll|darf))\b
      (?!.{0,60}\b(?:mir\b|uns\b|mein))(?:.{0,60}\b(?:genehmigen|bewilligen|erstatten|preisgeben|unser produkt)\b(?! lassen)|.{0,60}${ADDRESS})`,
    pattern`\bgehorche\b.{0,15}\b(?:nur|allein|ausschließlich)\b.{0,6}\bmir\b`,
    pattern`\b(?:du bist (?:${DE.fromNow}|jetzt|nun)|(?:${DE.fromNow}|jetzt|nun) bist du)\b[^,.;]{0,30}\b(?:admin|administrator|dan|ohne (?:regeln|einschränkungen))\b`,
    pattern`\b(?:zeige?|gib|verrate?|nenne?)\b[^,.;]{0,20}\b(?:system-?prompt|deine\p{L}? (?:geheim|intern|versteckt)\p{L}* ${DE.rules})`,
  ],
  aboutOthers: [
    pattern`(?<!\bich )\b(?:sage?|teile?|erzähle?|empfiehl|speichere?|merke? dir)\b (?:bitte |auch |für )*${DE.all} ${DE.people}`,
    pattern`(?<!\bich )\b(?:lösche?|ändere?|lies|zeige?|verrate?)\b.{0,15}\b(?:erinnerungen|daten|profile?|gespräche|konten) ${DE.all} ${DE.people}`,
  ],
};

const ES = {
  rules: '(?:instrucciones|reglas|normas|directrices|restricciones|[oó]rdenes)',
  fromNow: '(?:(?:a partir de|desde) (?:ahora|hoy|este momento)|de (?:ahora|hoy) en adelante|en adelante),?',
  must: '(?:debes|deber[aá]s|tienes que|vas a)',
  all: '(?:tod[oa]s l[oa]s|cada|otr[oa]s|l[oa]s dem[aá]s)(?: (?:otr[oa]s|dem[aá]s))?',
  people: String.raw`(?:usuari[oa]|cliente)s?\b(?!.{0,40}\b(?:mis?|nuestr[oa]s?|soy|\p{L}{0,12}mos)\b)`,
};

const SPANISH: LanguageRules = {
  instructs: [
    pattern`(?:${CLAUSE}(?:ignor(?:a|e|ad|en)|olvid(?:a|e|ad|en)|haz caso omiso de|no (?:sigas|obedezcas|respetes))|\b(?:que (?:ignores|olvides)|(?:${ES.must}|hay que) (?:ignorar|olvidar)))
      (?:(?: (?:tod[oa]s|l[oa]s|tus|sus|anteriores)){1,3} ${ES.rules}(?:${endBefore('y|o|anteriores|previas|que te|del sistema|de arriba')})
      | todo lo (?:anterior\b|que (?:te|le|se te|se le) ))`,
    pattern`\b(?:${ES.fromNow} ${ES.must}|${ES.must} siempre|(?:el asistente|la ia) (?:debe|tiene que))\b
      (?!.{0,60}(?:\b(?:me|m[ií]|mis|nos)|rme)\b)(?:.{0,60}\b(?:aprobar|conceder|reembolsar|revelar)\b|.{0,60}${ADDRESS})`,
    pattern`${CLAUSE}obed[eé]ceme\b.{0,10}\bs[oó]lo\b`,
    pattern`\b(?:ahora|${ES.fromNow}) (?:t[uú] )?eres\b[^,.;]{0,30}\b(?:administrador|dan|sin (?:restricciones|reglas))\b`,
    pattern`\b(?:muestra|mu[eé]strame|revela|dime|imprime)\b[^,.;]{0,20}\b(?:prompt del sistema|tus ${ES.rules} (?:secret|intern|ocult|inicial))`,
  ],
  aboutOthers: [
    pattern`${CLAUSE}(?:di|dile|diles|informa|recomienda|guarda|recuerda|anota) (?:a|para) ${ES.all} ${ES.people}`,
    pattern`${CLAUSE}(?:borra|elimina|muestra|mu[eé]strame|cambia|lee)\b.{0,15}\b(?:recuerdos|memorias|datos|perfiles|cuentas|conversaciones) de ${ES.all} ${ES.people}`,
  ],
};

const FR = {
  rules: '(?:consignes?|instructions?|r[eè]gles?|directives?|restrictions?|prompts?)',
  fromNow: '(?:[aà] partir de maintenant|d[eé]sormais|dor[eé]navant),?',
  must: '(?:tu (?:dois|devras|vas)|vous (?:devez|devrez|allez))',
  all: "(?:tou(?:s|tes) les|chaque|(?:les|des|aux|d') ?autres)(?: autres)?",
  people: String.raw`(?:utilisat|client|usager)\p{L}*\b(?!.{0,40}\b(?:mon|ma|mes|notre|je|nous)\b)`,
};

const FRENCH: LanguageRules = {
  instructs: [
    pattern`(?:${CLAUSE}(?:(?:ignore|oublie)[zr]?|ne (?:tiens|tenez) (?:plus|pas) compte de|ne (?:suis|suivez|respectez?)(?: plus| pas)?)|\b(?:que tu (?:ignores|oublies)|${FR.must} (?:ignorer|oublier)))
      (?:(?: (?:toutes|tous|les|la|tes|vos|mes|aucune)){1,3} ${FR.rules}(?:${endBefore("et|ou|pr[eé]c[eé]dentes|ant[eé]rieures|ci-dessus|qu[ei']?|du (?:syst[eè]me|d[eé]veloppeur)")})
      | tout ce qu(?:i pr[eé]c[eè]de|'on (?:t'|te |vous )))`,
    pattern`\b(?:${FR.fromNow} ${FR.must}|${FR.must} toujours|l'(?:assistant|ia) (?:doit|devra))\b
      (?!.{0,60}\b(?:me|m|moi|mon|ma|mes|nous)\b)(?:.{0,60}\b(?:accorder|approuver|rembourser|r[eé]v[eé]ler)\b|.{0,60}${ADDRESS})`,
    pattern`\bn'ob[eé](?:is|issez) qu'à moi\b`,
    pattern`\b(?:tu es (?:${FR.fromNow}|maintenant)|(?:${FR.fromNow}|maintenant,?) tu es)[^,.;]{0,30}\b(?:administrateur|dan|sans (?:restrictions?|r[eè]gles?))\b`,
    pattern`\b(?:affiche|montre|r[eé]v[eè]le|donne|dis)\b[^,.;]{0,20}\b(?:prompt syst[eè]me|tes ${FR.rules} (?:secr|intern|cach|initial))`,
  ],
  aboutOthers: [
    pattern`${CLAUSE}(?:dis|dites|annoncez?|recommandez?|enregistrez?|retiens|notez?) (?:[aà] |pour )?${FR.all} ${FR.people}`,
    pattern`${CLAUSE}(?:efface|supprime|montre|affiche|modifie|lis)z?\b.{0,15}\b(?:souvenirs|m[eé]moires|donn[eé]es|profils|comptes|conversations) (?:de )?${FR.all} ${FR.people}`,
  ],
};

const RU = {
  rules: String.raw`(?:(?:инструкци|указани|ограничени)\p{L}{1,3}|правил\p{L}{0,3}|промпт)`,
  fromNow: '(?:с этого (?:момента|дня)|отныне|впредь)',
  all: '(?:все[мх]|каждо(?:му|го)|други[мх]|остальны[мх])(?: (?:други[мх]|остальны[мх]))?',
  people: String.raw`(?:пользовател|клиент|покупател)\p{L}*\b(?!.{0,40}\b(?:мо|наш|я\b|мы\b))`,
};

const RUSSIAN: LanguageRules = {
  script: /\p{Script=Cyrillic}/u,
  instructs: [
    pattern`(?<!\bне )\b(?:(?:про)?игнорируй|забудь|не (?:следуй|соблюдай|выполняй)|(?:ты|вы) долж\p{L}{2} (?:игнорировать|забыть))(?:те)?
      (?:(?: (?:о|про|больше|все[хм]?|сво\p{L}+|тво\p{L}+|системн\p{L}+|предыдущи\p{L}+|прежни\p{L}+)){0,4} ${RU.rules}(?:${endBefore('и|или|выше|системы|котор(?:ые|ых|ым)')})
      | вс[её],? (?:вышесказанное|предыдущее|что (?:тебе|вам)))`,
    pattern`\b(?:${RU.fromNow} ты (?:долж|обязан)|ты (?:всегда долж|долж\p{L}{2} всегда)|(?<!\b(?:мой|наш) )(?:ассистент|ии) (?:долж|обязан))\p{L}*\b
      (?!.{0,60}\b(?:мне|нам|мо))(?:.{0,60}\b(?:одобр|возмеща|раскры)|.{0,60}${ADDRESS})`,
    pattern`\bподчиняйся\b.{0,10}\bтолько мне\b`,
    pattern`\b(?:теперь ты|ты теперь|${RU.fromNow} ты)\b[^,.;]{0,15}\b(?:администратор|dan|без (?:ограничений|правил))\b`,
    pattern`\b(?:покажи|выведи|раскрой|назови)\b[^,.;]{0,20}\b(?:системный промпт|(?:свои|твои|ваши) (?:секретн|скрыт|внутренн)\p{L}+ ${RU.rules})`,
  ],
  aboutOthers: [
    pattern`\b(?:скажи|сообщи|передай|порекомендуй|запомни|сохрани|запиши)(?:те)? (?:для )?${RU.all} ${RU.people}`,
    pattern`\b(?:удали|сотри|измени|покажи|прочитай)(?:те)?\b.{0,15}\b(?:воспоминани|данн|профил|аккаунт|разговор|переписк)\p{L}* ${RU.all} ${RU.people}`,
  ],
};

const ZH = {
  clause: '(?<=^|[\\n,.:;!?。、"“(]|[请請并並]|你(?:要|必须|必須))',
  fromNow: '(?:[从從](?:现在|現在)(?:开始|開始|起)|[从從]今以[后後]|今[后後]|以[后後])',
  rules: '(?:指令|指示|规则|規則|命令|提示词|提示詞)',
  all: '(?:所有|每个|每個|每位|全部|其他|别的|別的)(?:其他)?的?',
  people: '(?:用户|用戶|客户|客戶|顾客|顧客)(?!.{0,12}我)',
};

const CHINESE: LanguageRules = {
  script: /\p{Script=Han}/u,
  instructs: [
    pattern`${ZH.clause}(?:忽略|忽视|無視|无视|忘记|忘記|忘掉|绕过|不要再?(?:遵守|执行|理会))
      (?:(?:你|之前|先前|此前|以上|上述|上面|系统|系統|所有|全部|一切|任何|的){1,4}${ZH.rules}(?!的)|以上(?:所有|全部)的?(?:内容|內容))`,
    pattern`(?:${ZH.fromNow},?你|(?<!的)(?:助手|ai))(?:必须|必須|要|应该|應該|总是|總是)(?!.{0,15}我)(?:.{0,15}(?:批准|泄露|透露)|.{0,30}${ADDRESS})`,
    pattern`你(?:要|必须|必須)?只能?(?:听|聽|服从|服從)我的(?:话|話|命令|指令)?(?=[,.!。]|$)`,
    pattern`你(?:从现在起|從現在起|现在|現在)是[^,.;。]{0,6}(?:管理员|管理員|dan|不受限制)`,
    pattern`(?:输出|輸出|显示|顯示|告诉我|告訴我|泄露)你的(?:系统|系統|隐藏|秘密|内部)(?:提示|指令|规则|規則)`,
  ],
  aboutOthers: [
    pattern`(?:${ZH.clause}(?:告诉|告訴)${ZH.all}${ZH.people}|[为為给給]${ZH.all}${ZH.people}(?:记住|記住|保存))`,
    pattern`${ZH.clause}(?:删除|刪除|清除|修改|查看|显示|顯示)${ZH.all}${ZH.people}.{0,5}(?:记忆|記憶|数据|數據|资料|資料|对话|對話)`,
  ],
};

// The languages below have one rule, for the simplest order: to ignore the previous instructions.

const ITALIAN: LanguageRules = {
  instructs: [
    pattern`(?:ignor(?:a|i|ate)|dimentic(?:a|hi|ate)|non (?:seguire|rispettare))(?<=${CLAUSE}\p{L}+(?: \p{L}+)?)(?: (?:tutt[ei]|ogni|l[ea]|i|gli|tue|tuoi|sue|vostre|precedenti)){1,4} (?:istruzioni|regole|direttive|linee guida)
      (?:${endBefore('e|o|qui sopra|di sistema|del sistema|che ti')}| (?:precedenti|ricevute|iniziali)\b(?! (?:di|de[il]|dell[aeo]?|per|su[il]?|sull[aeo]?)\b))`,
  ],
  aboutOthers: [],
};

const PORTUGUESE: LanguageRules = {
  instructs: [
    pattern`(?:ignor(?:a|e|em)|esque[cç](?:e|a|am)|desconsider(?:a|e|em)|não sigas?)(?<=${CLAUSE}\p{L}+(?: \p{L}+)?)(?: (?:tod[oa]s|quaisquer|[oa]s|[st]uas|anteriores|prévias)){1,4} (?:instruções|regras|diretrizes|restrições)
      (?:${endBefore('e|ou|acima|do sistema|que (?:te|lhe)')}| (?:anteriores|prévias)\b(?! (?:d[aeo]s?|para|sobre)\b))`,
  ],
  aboutOthers: [],
};

const DUTCH: LanguageRules = {
  instructs: [
    pattern`(?:negeert?|vergeet|volg niet(?: langer)?)(?<=${CLAUSE}\p{L}+(?: \p{L}+){0,2})(?: (?:nu|alsjeblieft|alle?|al|je|jouw|uw|de|het|vorige|eerdere|voorgaande|voorafgaande|bovenstaande)){1,5} (?:instructies|regels|richtlijnen|systeemprompt)
      (?:${endBefore('en|of|hierboven|van het systeem|die je')})`,
  ],
  aboutOthers: [],
};

const POLISH: LanguageRules = {
  instructs: [
    pattern`(?<!\bnie )\b(?:(?:z?ignoruj|pomiń)(?:cie)?|zapomnij(?:cie)? o|nie przestrzegaj)(?: (?:wszystkie|wszystkich|wszelkie|wszelkich|swoich|swoje|twoje|twoich|powyższe|poprzedni(?:e|ch)|wcześniejsz(?:e|ych))){1,4} (?:instrukcj(?:e|i|ach)|polece(?:nia|niach|ń)|zasad(?:y|ach)?|wytyczn(?:e|ych))
      (?:${endBefore('i|oraz|lub|systemowe|powyżej')})`,
  ],
  aboutOthers: [],
};

const TURKISH: LanguageRules = {
  instructs: [
    pattern`(?:önceki|yukarıdaki|sana verilen)(?: (?:tüm|bütün|sistem|bu))* (?:talimat|yönerge|kural|komut)(?:lar[ıi]|leri) (?:tamamen )?(?:yok say|görmezden gel|göz ardı et|dikkate alma|unut)(?:[ıiuü]n(?:[ıiuü]z)?)?\b
      (?<=(?:^ ?|[\n.,:;!?"] ?|\b(?:lütfen|şimdi|artık) )(?:(?:bundan|daha|tüm|bütün) ){0,2}(?:önceki|yukarıdaki|sana verilen)[\p{L} ]{10,80})`,
  ],
  aboutOthers: [],
};

const VIETNAMESE: LanguageRules = {
  instructs: [
    pattern`(?:bỏ qua|phớt lờ|quên)(?<=(?:^ ?|[\n.,:;!?"] ?|\b(?:hãy|vui lòng|làm ơn|xin) )\p{L}+(?: \p{L}+)?)(?: (?:đi|hết|tất cả|mọi|toàn bộ|những|các)){0,3} (?:chỉ dẫn|hướng dẫn|chỉ thị|mệnh lệnh|lệnh|quy tắc) (?:hệ thống|trước (?:đó|đây)|trước(?! đ)|(?:ở|phía|bên) trên|đã được đưa ra)\b(?! (?:của|cho|về)\b)`,
  ],
  aboutOthers: [],
};

/** The beginning of a clause in a language that has no words before an imperative. */
const BEGIN = String.raw`(?<=^ ?|[\n.,:;!?"'“「『。、،؛।(-] ?)`;

/** Some imperative forms are also used in stories, so a sentence in the past does not match. */
const JAPANESE: LanguageRules = {
  script: /[\p{Script=Hiragana}\p{Script=Katakana}]/u,
  instructs: [
    pattern`${BEGIN}(?:どうか|では|今すぐ)?(?:(?:これ|それ|ここ|今)まで|以前|以上|上記|(?:先ほど|前|上)の(?=(?:すべて|全て|全部)))の?(?:すべて|全て|全部|あらゆる|システム|の)*(?:指示|命令|指令|ルール|プロンプト)(?:を|は)(?:すべて|全て|全部|一切)?
      (?:無視|破棄)(?:しろ|せよ|して(?:ください|下さい|くれ|ほしい|[、,。.!]|$)|し[、,])(?![^。.\n]{0,80}(?:[っしけえいき]た|んだ|います|いる)(?:[。.\n]|$))`,
  ],
  aboutOthers: [],
};

const KOREAN: LanguageRules = {
  script: /\p{Script=Hangul}/u,
  instructs: [
    pattern`(?<=^ ?|[\n.,:;!?"] ?|(?:제발|부디|이제|지금부터) )(?:모든 )?(?:이전|앞선|위|지금까지|기존)의? ?(?:모든 |시스템 )*(?:지시|명령|지침|프롬프트)(?: ?사항)?(?:들)?(?:을|를|은|는)? ?(?:모두 |전부 |다 )?
      무시(?:하고|하세요|하라|하십시오|해라|해 ?(?:줘|주세요|주십시오)|해(?=[.!,\n]|$))(?![^.\n]{0,80}[었았했갔왔됐렸났졌쳤켰](?:다|어|습|지|네))`,
  ],
  aboutOthers: [],
};

const ARABIC: LanguageRules = {
  script: /\p{Script=Arabic}/u,
  instructs: [
    pattern`(?<=^ ?|[\n.:;!?"،؛] ?|\b(?:فضلك|رجاء|رجاءً|الآن) )(?:تجاهل[يوا]{0,2}|انس|لا تتبع)(?: (?:جميع|كل|كافة))? (?:التعليمات|الأوامر|القواعد|الإرشادات|التوجيهات)(?: (?:كلها|جميعها))? (?:السابقة|أعلاه|المذكورة أعلاه)(?! (?:ل|من |في |عن |على |ب|التي ))`,
  ],
  aboutOthers: [],
};

const HINDI: LanguageRules = {
  script: /\p{Script=Devanagari}/u,
  instructs: [
    pattern`(?<=^ ?|[\n.,:;!?"।] ?|(?:कृपया|अब) )(?:(?:अपने|सभी) )?(?:पिछले|पहले के|ऊपर के|ऊपर दिए गए|उपरोक्त|पूर्व)(?: (?:सभी|सारे|तमाम))? (?:निर्देशों|निर्देश|नियमों|आदेशों) (?:को|की) (?:पूरी तरह )?
      (?:(?:अनदेखा|नज़रअंदाज़|उपेक्षा|अनसुना) (?:करो|करें|कीजिए|कर (?:दो|दें|दीजिए))|भूल (?:जाओ|जाएं|जाइए))(?=$| ?[।,.!?\n]| (?:और|व) )`,
  ],
  aboutOthers: [],
};

export const LANGUAGES: readonly LanguageRules[] = [
  GERMAN,
  SPANISH,
  FRENCH,
  ITALIAN,
  PORTUGUESE,
  DUTCH,
  POLISH,
  TURKISH,
  VIETNAMESE,
  RUSSIAN,
  CHINESE,
  JAPANESE,
  KOREAN,
  ARABIC,
  HINDI,
];
