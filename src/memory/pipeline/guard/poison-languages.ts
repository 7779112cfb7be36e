/**
 * The rules for languages other than English. A verb alone is never enough, because people forget rules and write to all customers, too:
 * a rule asks for an imperative, or for "you must" or "the assistant must", together with what is ordered.
 */
import { latin } from './readings.ts';

/** The rules of a language. */
interface LanguageRules {
  readonly instructs: readonly RegExp[];
  readonly aboutOthers: readonly RegExp[];
}

/** The beginning or the end of a word: `\b` knows the letters of English only. */
const EDGE = String.raw`(?:(?<![\p{L}\p{N}])(?=[\p{L}\p{N}])|(?<=[\p{L}\p{N}])(?![\p{L}\p{N}]))`;

/** A pattern in lines, with {@link EDGE} for `\b`. Its letters look like those of a normalized text. */
function pattern({ raw }: TemplateStringsArray, ...parts: readonly string[]): RegExp {
  const source = String.raw({ raw }, ...parts).replaceAll(/\n */g, '');
  return new RegExp(source.replaceAll(String.raw`\b`, EDGE).replaceAll(/\p{Script=Cyrillic}/gu, latin), 'u');
}

/** The beginning of a clause, where "ignora" is an imperative. Elsewhere it says what someone does. */
const CLAUSE = String.raw`(?<=^ ?|[\n.,:;!?¡¿"«»(—-] ?|\b(?:y|e|et|puis|ahora|entonces|maintenant|alors|por favor|veuillez) )`;

const DE = {
  rules: '(?:anweisung|regel|vorgabe|instruktion|richtlinie|einschränkung|beschränkung|prompt|befehl)',
  given: String.raw`(?:alle[ns]?|sämtliche\p{L}?|jegliche\p{L}?|bisherige\p{L}?|vorherige\p{L}?|vorige\p{L}?|obige\p{L}?|deine\p{L}?|ihre)`,
  fromNow: '(?:ab (?:jetzt|sofort|heute)|von (?:nun|jetzt|heute) an|künftig|zukünftig|in zukunft)',
  must: '(?:musst|sollst|wirst|darfst)',
  harm: '(?:genehmig|erstatte|sende|schicke|weiterleit|weiterzuleit|überweis|herausgeb|preisgeb|preiszugeb|verrat|offenleg|lösche|gehorche|freigeb|bewillig|zustimm)',
  people: '(?:be)?(?:nutzer|kund|anwender|user|mitglied|teilnehmer)',
  all: String.raw`(?:alle[nrs]?|jede[mnrs]?|sämtliche[nr]?|(?:den |die |der )?(?:andere[nr]?|übrige[nr]?|restliche[nr]?|weitere[nr]?))(?: (?:anderen?|anderer|übrigen|restlichen|weiteren))?`,
};

const GERMAN: LanguageRules = {
  instructs: [
    pattern`(?<!\bich )\b(?:ignoriere|vergiss|missachte|umgehe|verwirf|(?:ignorieren|vergessen|missachten|umgehen) sie)\b
      (?! (?:ich|(?:bitte |ja |auch )*nicht)\b)
      (?:.{0,30}\b${DE.given}\b.{0,30}${DE.rules}
      |,? alles(?: bisherige|obige|vorherige|,? was (?:dir|ihnen|man dir|man ihnen|oben)\b))`,
    pattern`\bdu ${DE.must}\b.{0,20}\b${DE.given}\b.{0,40}${DE.rules}\p{L}{0,3} (?:ignorieren|vergessen|missachten|umgehen)\b`,
    pattern`(?<!\bich )\b(?:halte dich|befolge|beachte|(?:halten|befolgen|beachten) sie)\b(?! ich\b)(?=.{0,50}\b(?:nicht|keine\p{L}?)\b).{0,50}${DE.rules}`,
    pattern`\b(?:${DE.fromNow}.{0,20}\b${DE.must} du|du ${DE.must} (?:${DE.fromNow}|immer|stets|jede\p{L}?|alle\p{L}?|nie))\b(?!.{0,60}\b(?:mir|uns)\b).{0,60}\b(?:${DE.harm}|empfehl)`,
    pattern`\b(?:der assistent|der bot|der chatbot|die ki|das modell)\b.{0,20}\b(?:muss|soll|hat|darf)\b.{0,60}\b${DE.harm}`,
    pattern`\bgehorch(?:e|st)\b.{0,15}\bmir\b`,
    pattern`\b(?:du bist (?:${DE.fromNow}|jetzt|nun|nicht (?:mehr|länger))|(?:${DE.fromNow}|jetzt|nun) bist du)\b[^,.;]{0,30}
      \b(?:administrator|admin|entwickler|dan|uneingeschränkt|unzensiert|an keine|ohne (?:regel|einschränkung|beschränkung|filter|zensur))`,
    pattern`\b(?:zeige?|gib|verrate?|nenne?|wiederhole?|offenbare?|sende|schicke?)\b.{0,40}\b(?:system-?prompt|systemnachricht|deine\p{L}? (?:geheim|intern|versteckt|ursprünglich)\p{L}+ ${DE.rules})`,
  ],
  aboutOthers: [
    pattern`(?<!\bich )\b(?:sage?|erzähle?|teile?|melde|verkünde|zeige?|schicke?|sende|rate|empfiehl)\b (?:es |das |bitte |auch |${DE.fromNow} )*${DE.all} ${DE.people}`,
    pattern`(?<!\bich )\b(?:speichere?|merke? dir|notiere?|vermerke?)\b.{0,20}\b(?:für|bei|über) ${DE.all} ${DE.people}`,
    pattern`(?<!\bich )\b(?:lösche?|ändere?|überschreibe?|lies|zeige?|verrate?|nenne?)\b.{0,30}\b(?:erinnerung|daten|profil|gespräch|konto|konten|notiz|nachricht)\p{L}{0,4} (?:aller|jedes|des|eines|der|von)(?: allen)? ?(?:anderen?|anderer|übrigen)? ?${DE.people}`,
  ],
};

const ES = {
  rules: '(?:instrucci[oó]n|regla|norma|directri[cz]|restricci[oó]n|indicaci[oó]n|[oó]rdenes|prompt)',
  fromNow:
    '(?:(?:a partir de|desde) (?:ahora|hoy|este momento)|de (?:ahora|hoy|aqu[ií]) en (?:adelante|m[aá]s)|en adelante)',
  must: '(?:debes|deber[aá]s|tienes que|tendr[aá]s que|vas a|usted debe|usted tiene que)',
  harm: '(?:aprobar|conceder|otorgar|autorizar|reembolsar|enviar|mandar|reenviar|transferir|revelar|divulgar|filtrar|obedecer|borrar|eliminar|aceptar)',
  people: '(?:usuari[oa]|cliente)',
  all: '(?:tod[oa]s(?: l[oa]s)?|cada|cualquier|l[oa]s|otr[oa]s?)(?: (?:otr[oa]s|dem[aá]s))?',
};

const SPANISH: LanguageRules = {
  instructs: [
    pattern`(?:${CLAUSE}(?:ignor[ae]|olvid[ae]|descart[ae]|desobedece|s[aá]ltate|ha(?:z|ga) caso omiso de|no (?:sigas|siga|obedezcas|respetes|hagas caso (?:a|de))|deja de (?:seguir|obedecer|respetar|cumplir))|\b${ES.must} (?:ignorar|olvidar))\b
      (?=.{0,60}\b(?:tod[oa]s|anterior(?:es)?|previ[oa]s|tus)\b).{0,50}\b${ES.rules}`,
    pattern`${CLAUSE}(?:ignor[ae] todo lo anterior|(?:ignor[ae]|olvid[ae]) todo lo que (?:te|le|se te|se le) )`,
    pattern`\b(?:${ES.fromNow}.{0,20}\b${ES.must}|${ES.must} siempre)\b.{0,60}\b(?:${ES.harm}|recomendar)\b`,
    pattern`\b(?:el asistente|la ia|el bot|el chatbot|el modelo)\b.{0,20}\b(?:debe|deber[aá]|tiene que|tendr[aá] que)\b.{0,60}\b${ES.harm}\b`,
    pattern`\bobed[eé]ce(?:me)?\b.{0,20}\ba m[ií]\b`,
    pattern`\b(?:(?:${ES.fromNow}|ahora|ya no),? (?:t[uú] )?eres|(?:t[uú] )?eres (?:${ES.fromNow}|ahora))\b[^,.;]{0,30}
      \b(?:administrador|desarrollador|dan|sin (?:restricciones|reglas|l[ií]mites|filtros|censura))`,
    pattern`\b(?:muestra|mu[eé]strame|revela|rev[eé]lame|dime|imprime|repite|ens[eé][nñ]ame|env[ií]a(?:me)?)\b.{0,40}
      \b(?:(?:prompt|mensaje|instrucciones) (?:inicial(?:es)? )?del sistema|tus ${ES.rules}\p{L}* (?:secret|intern|ocult|inicial))`,
  ],
  aboutOthers: [
    pattern`${CLAUSE}(?:di|d[ií]les?|av[ií]sales?|avisa|cu[eé]ntales?|inf[oó]rmales?|informa|comunica|recomi[eé]nda(?:les)?|muestra|mu[eé]strales?|env[ií]a(?:les)?)\b (?:siempre |tambi[eé]n |por favor )*a ${ES.all} ${ES.people}`,
    pattern`${CLAUSE}(?:guarda|recuerda|anota|registra|memoriza|almacena|apunta)\b.{0,20}\bpara ${ES.all} ${ES.people}`,
    pattern`${CLAUSE}(?:borra|elimina|muestra|mu[eé]strame|cambia|lee|modifica)\b.{0,30}\b(?:recuerdos|memorias?|datos|perfil(?:es)?|cuentas?|conversaci[oó]n(?:es)?|historial(?:es)?) de ${ES.all} ${ES.people}`,
  ],
};

const FR = {
  rules: '(?:consigne|instruction|r[eè]gle|directive|restriction|contrainte|prompt)',
  fromNow:
    '(?:[aà] partir de (?:maintenant|ce moment|cet instant)|d[eé]sormais|dor[eé]navant|d[eè]s (?:maintenant|[aà] pr[eé]sent))',
  must: '(?:tu (?:dois|devras|vas)|vous (?:devez|devrez|allez))',
  harm: '(?:accorder|approuver|autoriser|valider|accepter|envoyer|transmettre|transf[eé]rer|r[eé]v[eé]ler|divulguer|rembourser|ob[eé]ir|supprimer|effacer)',
  people: '(?:utilisat|client|usager|abonn[eé])',
  all: "(?:tou(?:s|tes)(?: l[ea]s)?|chaque|les|des|d')(?: ?autres)?",
};

const FRENCH: LanguageRules = {
  instructs: [
    pattern`(?:${CLAUSE}(?:(?:ignore|oublie|contourne)[zr]?|fai(?:s|tes) abstraction de|d[eé]sob[eé]i(?:s|ssez) [aà]|ne (?:tiens|tenez) (?:plus|pas) compte de|ne (?:suis|suivez|respectez?) (?:plus|pas))|\b${FR.must} (?:ignorer|oublier))\b
      (?=.{0,60}\b(?:toutes|tous|pr[eé]c[eé]dente?s|ant[eé]rieure?s|tes|vos|ci-dessus)\b).{0,50}\b${FR.rules}`,
    pattern`${CLAUSE}(?:ignorez? tout ce qui pr[eé]c[eéè]de|(?:ignore|oublie)z? tout ce qu(?:'on|'ils|e l'on) (?:t'|te |vous ))`,
    pattern`\b(?:${FR.fromNow}.{0,20}\b${FR.must}|${FR.must} (?:toujours|syst[eé]matiquement))\b(?!.{0,25}\b(?:me |m'|nous )).{0,60}\b(?:${FR.harm}|recommander)\b`,
    pattern`\b(?:l'assistant|l'ia|le bot|le chatbot|le mod[eè]le)\b.{0,20}\b(?:doit|devra)\b.{0,60}\b${FR.harm}\b`,
    pattern`\bob[eé]i(?:s|ssez)\b.{0,15}[ ']à moi\b`,
    pattern`\b(?:tu (?:es|n'es) (?:${FR.fromNow}|maintenant|plus)|(?:${FR.fromNow}|maintenant),? tu es)\b[^,.;]{0,30}
      \b(?:administrateur|d[eé]veloppeur|dan|sans (?:restriction|r[eè]gle|limite|filtre|censure))`,
    pattern`\b(?:affiche|montre|r[eé]v[eè]le|donne|dis|r[eé]p[eè]te|imprime|envoie)\b.{0,40}
      \b(?:(?:prompt|message|instructions) (?:du )?syst[eè]me|tes ${FR.rules}s? (?:secr|intern|cach|initial))`,
  ],
  aboutOthers: [
    pattern`${CLAUSE}(?:dis|dites|annoncez?|informez?|racontez?|recommandez?|signalez?|montrez?|envoyez|envoie)\b (?:aussi |toujours )*(?:[aà] ${FR.all}|aux autres|tous les(?: autres)?|chaque) ${FR.people}`,
    pattern`${CLAUSE}(?:enregistre|retiens|retenez|m[eé]morise|note|souviens-toi|sauvegarde)z?\b.{0,20}\bpour ${FR.all} ${FR.people}`,
    pattern`${CLAUSE}(?:efface|supprime|montre|affiche|modifie|lis|change)z?\b.{0,30}\b(?:souvenirs|m[eé]moires?|donn[eé]es|profils?|comptes?|conversations?) (?:d[eu] )?${FR.all} ?${FR.people}`,
  ],
};

const RU = {
  rules: '(?:инструкци|указани|правил|директив|ограничени|предписани|промпт|распоряжени)',
  fromNow: '(?:(?:начиная )?с (?:этого|данного|настоящего) (?:момента|дня|часа)|с сегодняшнего дня|отныне|впредь)',
  harm: '(?:одобр|возвраща|возмеща|отправл|пересыл|раскры|выдава|подчин|удал|соглаша|разреша|предоставл|перечисл)',
  people: '(?:пользовател|клиент|покупател)',
  all: '(?:всем|всех|каждо(?:му|го)|други[мх]|остальны[мх]|прочи[мх])(?: (?:други[мх]|остальны[мх]|прочи[мх]))?',
};

const RUSSIAN: LanguageRules = {
  instructs: [
    pattern`(?<!\bне )\b(?:(?:про)?игнорируй|забудь|отбрось|обойди|нарушай|отключи|не (?:следуй|соблюдай|выполняй|слушай)|(?:ты|вы) долж\p{L}+ (?:игнорировать|забыть))(?:те)?\b
      (?:(?=.{0,60}\b(?:все|всех|всем|любые|предыдущи\p{L}+|прежни\p{L}+|вышеуказанны\p{L}+|сво\p{L}+|твои\p{L}*|ваши\p{L}*)\b).{0,50}\b${RU.rules}
      | вс[её],? (?:вышесказанное|предыдущее|что (?:тебе|вам|было выше)))`,
    pattern`\b(?:${RU.fromNow}.{0,20}\b(?:ты|вы) (?:всегда )?(?:долж|обязан|будешь|будете)|(?:ты|вы) (?:всегда (?:долж|обязан)|(?:долж|обязан)\p{L}+ всегда))\p{L}*\b(?!.{0,60}\b(?:мне|нам)\b).{0,60}\b(?:${RU.harm}|рекоменд)`,
    pattern`(?<!\b(?:мой|наш|моя|наша) )\b(?:ассистент|бот|чат-бот|модель|ии)\b.{0,15}\b(?:долж|обязан)\p{L}+\b.{0,60}\b${RU.harm}`,
    pattern`\bподчиняйся\b.{0,15}\bмне\b`,
    pattern`\b(?:(?:теперь|${RU.fromNow}) (?:ты|вы)|ты (?:теперь|больше не|${RU.fromNow}))\b[^,.;]{0,30}\b(?:администратор|разработчик|dan|без (?:ограничени|правил|цензур|фильтр))`,
    pattern`\b(?:покажи|выведи|раскрой|назови|повтори|напечатай|пришли|выдай)(?:те)?\b.{0,40}
      \b(?:системн\p{L}+ (?:промпт|сообщени|инструкци|подсказк)|(?:свои|твои|ваши) (?:секретн|скрыт|внутренн|исходн)\p{L}+ ${RU.rules})`,
  ],
  aboutOthers: [
    pattern`\b(?:скажи|сообщи|передай|расскажи|объяви|посоветуй|(?:по)?рекомендуй|покажи|отправь|разошли)(?:те)?\b (?:это |также |пожалуйста, )*${RU.all} ${RU.people}`,
    pattern`\b(?:запомни|сохрани|запиши|отметь)(?:те)?\b.{0,20}\bдля ${RU.all} ${RU.people}`,
    pattern`\b(?:удали|сотри|измени|покажи|прочитай)(?:те)?\b.{0,20}\b(?:воспоминани|памят|данн|профил|аккаунт|разговор|переписк|истори)\p{L}* (?:всех )?${RU.all} ${RU.people}`,
  ],
};

const ZH = {
  rules: '(?:指令|指示|规则|規則|命令|提示|要求|设定|設定|限制|准则|準則|约束|約束|规定|規定)',
  harm: '(?:批准|同意|退款|发送|發送|转发|轉發|泄露|洩露|透露|服从|服從|听从|聽從|授权|授權|转账|轉賬|删除|刪除)',
  people: '(?:用户|用戶|客户|客戶|顾客|顧客|使用者)',
  all: '(?:所有|每个|每個|每位|每一位|全部|其他|其它|别的|別的)(?:的)?(?:其他|其它)?(?:的)?',
  self: '[我他她它们們人户戶]',
  clause: '(?<=^|[\\n,.:;!?。、"“(]|[请請并並]|你(?:要|必须|必須)|然后|然後|帮我|幫我)',
};

const CHINESE: LanguageRules = {
  instructs: [
    pattern`(?<!${ZH.self}|总是|總是|常|别|別|不[要会會能该該]?|没有|沒有|没)(?:忽略|无视|無視|忘记|忘記|忘掉|绕过|繞過|违反|違反|抛弃|不要再?(?:遵守|听从|服从|执行)|不再遵守|停止遵守)(?![了过過])
      (?:.{0,12}(?:之前|以前|先前|此前|上述|以上|上面|前面|所有|全部|一切|任何|你的|系统|系統).{0,8}${ZH.rules}|(?:以上|上述|之前|上面|前面)的?(?:所有|全部|一切)?的?(?:内容|內容|对话|對話|信息|文字))`,
    pattern`(?:[从從自](?:现在|現在|今|此刻|此|今天)(?:开始|開始|起|以后|以後|往后)?|今后|今後|以后|以後),?.{0,6}你(?:必须|必須|要|得|应该|應該|只能|都要|总是|總是|一定要|需要)(?!.{0,15}[给給向](?:我|我们|我們)).{0,15}${ZH.harm}`,
    pattern`(?<!的)(?:助手|机器人|機器人|模型|ai)(?:必须|必須|应该|應該|要|总是|總是|一律|需要).{0,15}${ZH.harm}`,
    pattern`只(?:听|聽|服从|服從)我的?(?:话|話|命令|指令|。|$)`,
    pattern`你(?:从现在起|從現在起|现在|現在)(?:已经|已經)?(?:是|不再是)(?!不是|否)[^,.;。]{0,10}(?:管理员|管理員|开发者|開發者|dan|没有(?:任何)?(?:限制|规则)|沒有(?:任何)?(?:限制|規則)|不受限制|无限制)`,
    pattern`(?:输出|輸出|打印|泄露|透露|重复|重複)(?:你的)?(?:系统|系統)(?:提示|指令|消息)|(?:显示|顯示|告诉我|告訴我|展示|说出).{0,4}你的.{0,4}(?:系统|系統|隐藏|隱藏|秘密|内部)的?(?:提示|指令|规则|規則)`,
  ],
  aboutOthers: [
    pattern`${ZH.clause}(?:告诉|告訴|通知|转告|轉告|提醒)${ZH.all}${ZH.people}`,
    pattern`(?<!${ZH.self})(?:为|為|给|給|替|对|對)${ZH.all}${ZH.people}(?:记住|記住|保存|记录|記錄|存储|儲存)`,
    pattern`${ZH.clause}(?:删除|刪除|清除|修改|查看|显示|顯示|读取|讀取|更改)${ZH.all}${ZH.people}.{0,5}(?:记忆|記憶|数据|數據|资料|資料|账户|帳戶|对话|對話|偏好|信息)`,
  ],
};

export const LANGUAGES: readonly LanguageRules[] = [GERMAN, SPANISH, FRENCH, RUSSIAN, CHINESE];
