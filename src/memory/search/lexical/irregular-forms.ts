/** English words, each followed by its forms that have another stem. Omits forms that are usually another word ("lives"). */
const ENGLISH = `
arise arose arisen, awake awoke awoken, bear borne, beat beaten, become became, begin began begun, bend bent, bite bit bitten, bleed bled,
blow blew blown, break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, catch caught, choose chose chosen,
cling clung, come came, creep crept, deal dealt, dig dug, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten,
fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled, fly flew flown, forbid forbade forbidden, forget forgot forgotten,
forgive forgave forgiven, freeze froze frozen, get got gotten, give gave given, go went gone, grow grew grown, hang hung, hear heard,
hide hid hidden, hold held, keep kept, kneel knelt, know knew known, lead led, leap leapt, learn learnt, leave left, lend lent, lie lain,
light lit, lose lost, make made, mean meant, meet met, pay paid, ride rode ridden, ring rang rung, rise risen, run ran, say said, see saw seen,
seek sought, sell sold, send sent, sew sewn, shake shook shaken, shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung,
sink sank sunk, sit sat, sleep slept, slide slid, speak spoke spoken, spend spent, spin spun, stand stood, steal stole stolen, stick stuck,
sting stung, strike struck, swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught, tear tore torn,
tell told, think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn, weave wove woven, weep wept, win won,
write wrote written, child children, foot feet, goose geese, knife knives, man men, mouse mice, person people, shelf shelves,
thief thieves, tooth teeth, wife wives, wolf wolves, woman women`;

/** Maps a form to its base. The stemmers only cut endings, so they do not change "went". */
export const ENGLISH_FORMS: ReadonlyMap<string, string> = new Map(
  ENGLISH.split(',').flatMap((entry) => {
    const [word, ...forms] = entry.trim().split(/\s+/);
    return forms.map((form) => [form, word!] as const);
  }),
);
