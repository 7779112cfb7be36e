/**
 * The topics of the people of the corpus. `{o}` is the owner of the fact, `{f}` the friend, `{v}` the value of a fact, `{w}` another value. The
 * messages of a fact share only some words with its questions, as in real conversations.
 */
export interface Domain {
  /** Values in the words of a person; each with another name that a question may use for it. */
  readonly values: readonly string[];
  /** Messages with which the friend may raise the subject. */
  readonly raised: readonly string[];
  /** Messages of the owner. With `|` the friend asks first, and the answer is a message of its own. */
  readonly said: readonly string[];
  /** Questions about a single fact. */
  readonly asked: readonly string[];
  /** Questions about all facts of the domain. If empty, a newer fact replaces the older one. */
  readonly askedOfAll?: readonly string[];
  /** Messages about other people, with the same words. */
  readonly distracting: readonly string[];
}

export interface Phrases {
  readonly names: readonly string[];
  readonly domains: readonly Domain[];
  /** Later messages of either person. They name a fact's value and do not answer a question. */
  readonly echoes: readonly string[];
  /** Messages in which the owner says that a fact is now true, after the friend has named it. */
  readonly confirmations: readonly string[];
  /** Pairs of a remark and an answer without facts. */
  readonly smallTalk: readonly (readonly [string, string])[];
  /** Chatter before or after any message. */
  readonly fillers: readonly string[];
  readonly openings: readonly string[];
  /** Answers of the friend to news. */
  readonly reactions: readonly string[];
  /** Messages of the owner after the news, without facts. */
  readonly afterthoughts: readonly string[];
}

const english: Phrases = {
  names:
    'Alice Ben Clara Daniel Elena Frank Grace Henry Iris Jacob Karen Liam Maya Nathan Olivia Peter Quinn Rosa Samuel Tara Victor Wendy Xavier Yara Zoe'.split(
      ' ',
    ),
  domains: [
    {
      values: ['Denver', 'Lisbon', 'Portland', 'Montreal', 'Leeds', 'Austin', 'Dublin', 'Oslo', 'Chicago', 'Valencia'],
      raised: [
        'Are you still happy with where you live, or is it time for another city?',
        'Did the move go as planned?',
      ],
      said: [
        "Big news, {f}: the boxes are unpacked and I'm officially a resident of {v}!",
        'How is the new place?|Still chaotic, but {v} already feels like home, and the balcony gets the evening sun.',
        'We finally moved last weekend. {v} is colder than I expected but I love the neighborhood.',
      ],
      asked: ['Where does {o} live now?', 'Which city did {o} move to?', 'What is the home town of {o} these days?'],
      distracting: [
        'My cousin is thinking of moving to {w}, can you imagine?',
        'We flew over {w} on the way back, what a view.',
      ],
    },
    {
      values: [
        'a paramedic',
        'a pastry chef',
        'a data analyst',
        'a park ranger',
        'a music teacher',
        'a welder',
        'a translator',
        'a radiologist',
        'a stage designer',
        'a beekeeper',
      ],
      raised: ['You sounded tired of your old job last time.', 'How is it going with the new profession?'],
      said: [
        "I got the offer! Starting next month I'll be working as {v}.",
        'So what are you doing for work these days?|I switched careers, would you believe it? I am {v} now and my boss is lovely.',
        'Three weeks in and being {v} is harder than the training made it look.',
      ],
      asked: ["What is {o}'s job?", 'What does {o} do for a living?', 'Which profession did {o} take up?'],
      distracting: [
        'My neighbor used to be {w} and hated every day of it.',
        'There was a documentary about the life of {w} on TV.',
      ],
    },
    {
      values: [
        'the cello',
        'the ukulele',
        'the drums',
        'the saxophone',
        'the harp',
        'the accordion',
        'the banjo',
        'the trumpet',
      ],
      raised: ['Do you still play any music these days?', 'You always wanted to learn an instrument, right?'],
      said: [
        'I picked up {v} again after all these years, my fingers hurt.',
        'What was that noise on the phone earlier?|Ha, that was me practicing {v}. My teacher says I have talent.',
        "Guess who bought {v} at the flea market? I've been playing every night.",
      ],
      asked: ['When did {o} start playing {v}?', 'What did {o} buy to make music with {v}?'],
      askedOfAll: ['What instruments does {o} play?', 'Which musical instruments has {o} learned?'],
      distracting: ['The guy upstairs plays {w} at midnight.', "There's a concert with {w} on Sunday, are you free?"],
    },
    {
      values: ['Biscuit', 'Pepper', 'Mochi', 'Luna', 'Waffles', 'Shadow', 'Clementine', 'Ziggy', 'Nutmeg', 'Olive'],
      raised: ['The house must be lively with a pet around!', 'I thought your landlord does not allow animals?'],
      said: [
        "We adopted a puppy from the shelter! Her name is {v} and she's chewing on my shoe right now.",
        "Who's that in the photo?|That's {v}, our new kitten. He sleeps in the sink.",
        '{v} came home with us yesterday, the kids are over the moon about the rabbit.',
      ],
      asked: [
        "What is the name of {o}'s pet?",
        'When did {o} get {v}?',
        'What kind of animal is {v}, who lives with {o}?',
      ],
      askedOfAll: ["What are the names of {o}'s pets?", 'Which animals live with {o}?'],
      distracting: ['My aunt named her parrot {w}, of all things.', 'The vet told us a story about a dog called {w}.'],
    },
    {
      values: [
        'the Grand Canyon',
        'Kyoto',
        'the Scottish Highlands',
        'Patagonia',
        'the Amalfi Coast',
        'Iceland',
        'Morocco',
        'Banff',
        'Vietnam',
        'the Azores',
      ],
      raised: ['You look tanned, where did you travel?', 'Was the trip worth it? I need a holiday too.'],
      said: [
        'Back from {v} last night. I am exhausted but the pictures came out amazing!',
        'How was your vacation?|Unbelievable. We hiked for six days around {v} and saw the sunrise twice.',
        'I took my mom to {v} for her birthday. She cried when we got there.',
      ],
      asked: ['When did {o} go to {v}?', 'When was the trip of {o} to {v}?', 'What did {o} do in {v}?'],
      askedOfAll: ['Where has {o} traveled?', 'Which places did {o} visit on holiday?'],
      distracting: [
        'I saw a cheap flight to {w} but the dates were terrible.',
        'A colleague keeps talking about {w}, apparently it is too crowded.',
      ],
    },
    {
      values: [
        'pottery',
        'rock climbing',
        'bird watching',
        'salsa dancing',
        'woodworking',
        'astronomy',
        'fencing',
        'calligraphy',
        'beekeeping',
        'archery',
      ],
      raised: [
        'What do you do in your free time now, any new hobby?',
        'You need an activity that helps you relax, I said it before.',
      ],
      said: [
        'I signed up for a {v} class, Thursdays after work. First session was so relaxing.',
        'You look happy, what happened?|Honestly? {v}. I go twice a week and my stress is gone.',
        'My weekends are all about {v} since the spring, I even made friends there.',
      ],
      asked: ['When did {o} sign up for {v}?', 'What helps {o} to relax?', 'Why does {o} like {v}?'],
      askedOfAll: ['What hobbies does {o} have?', 'What activities does {o} do in free time?'],
      distracting: [
        'They opened a studio for {w} next to the bakery.',
        'Someone at the office tried {w} and broke a wrist.',
      ],
    },
    {
      values: ['peanuts', 'shellfish', 'gluten', 'dairy', 'strawberries', 'soy', 'eggs', 'sesame'],
      raised: ['Why did you skip the food at the party?', 'Is that allergy thing of yours settled now?'],
      said: [
        'The doctor called, the test came back: I react to {v}. No more takeout for me.',
        'Do you want some of this?|I wish, but I break out in hives from {v} since last year.',
        'Ended up in the emergency room after dinner, turns out {v} and I do not get along.',
      ],
      asked: [
        'What is {o} allergic to?',
        'Which food does {o} have to avoid?',
        'What allergy was found by the doctor of {o}?',
      ],
      distracting: ['I bought too many {w} at the market again.', 'The recipe asks for {w}, but it works without.'],
    },
    {
      values: [
        'The Night Circus',
        'Dune',
        'Middlemarch',
        'Project Hail Mary',
        'Circe',
        'Pachinko',
        'The Overstory',
        'Beloved',
        'Piranesi',
        'Moby-Dick',
      ],
      raised: ['Read any good books lately?', 'What is next for your book club?'],
      said: [
        'I stayed up until three to finish {v}. That ending!',
        'Any recommendation for the flight?|{v}, absolutely. I read it twice this summer.',
        'Our book club chose {v} and for once everybody agreed.',
      ],
      asked: ['When did {o} read {v}?', 'Which book did {o} recommend?', "What did {o}'s book club read?"],
      askedOfAll: ['What books has {o} read?'],
      distracting: ['My dad keeps a first edition of {w} behind glass.', 'There is a movie of {w} coming, they say.'],
    },
    {
      values: [
        'an electric bike',
        'a used pickup',
        'a red convertible',
        'a camper van',
        'a Vespa',
        'a hybrid',
        'an old Volvo',
        'a motorcycle',
      ],
      raised: ['Do you still drive that rusty old thing?', 'You said you wanted to buy a different vehicle.'],
      said: [
        "Signed the papers this morning, {v} is mine! I've been driving around the block all day.",
        'How did you get here so fast?|I have {v} now. Sold the other one last month.',
        'My savings are gone, but {v} is parked in front of the house.',
      ],
      asked: ['What vehicle does {o} own now?', 'What did {o} buy to get around?', 'What does {o} drive?'],
      distracting: ['{w} blocked our driveway all morning.', 'My brother dreams of {w}, he shows me ads every day.'],
    },
    {
      values: [
        'a marathon in Boston',
        'the chess tournament',
        'the baking contest',
        'a photo competition',
        'the science fair',
        'a poetry slam',
        'the charity race',
        'a robotics challenge',
      ],
      raised: ['How did it go, did you win?', 'I heard you took part in something big!'],
      said: [
        'I still have goosebumps, I came third in {v}!',
        "Why didn't you answer your phone on Saturday?|I was at {v}, and guess what, they gave me a medal.",
        'All that training paid off. {v} went better than I dared to hope.',
      ],
      asked: ['When did {o} take part in {v}?', 'How did {o} do in {v}?', 'What did {o} win in {v}?'],
      askedOfAll: ['What competitions has {o} taken part in?'],
      distracting: ['The traffic because of {w} was awful.', 'They are looking for volunteers for {w}.'],
    },
    {
      values: ['Thai green curry', 'sourdough', 'lasagna', 'pierogi', 'ramen', 'paella', 'apple strudel', 'tamales'],
      raised: ['What did you cook for your friends?', 'You promised me a recipe for a good meal.'],
      said: [
        'Tried to make {v} from scratch, the kitchen looks like a battlefield but it was delicious.',
        "What's cooking?|{v}! My grandmother's recipe, she wrote it down for me.",
        'I could eat {v} every single day, no joke.',
      ],
      asked: ["What is {o}'s favorite dish?", 'When did {o} cook {v}?', 'Whose recipe did {o} use for {v}?'],
      askedOfAll: ['What meals has {o} cooked?'],
      distracting: ['The place on the corner has {w} on the menu now.', 'We had {w} at the wedding and it was cold.'],
    },
    {
      values: [
        'an animal shelter',
        'a food bank',
        'a homework club',
        'the library',
        'a hospice',
        'a community garden',
        'a refugee center',
        'the fire brigade',
      ],
      raised: ['Do you still volunteer anywhere?', 'I admire people who do charity work.'],
      said: [
        "I've started giving my Saturday mornings to {v}. It changes how you see things.",
        'Busy weekend?|I helped out at {v}, they never have enough hands.',
        'A lady at {v} hugged me today and said that I made her week.',
      ],
      asked: [
        'Where does {o} volunteer?',
        'What kind of charity work does {o} do?',
        'When did {o} begin to volunteer at {v}?',
      ],
      askedOfAll: ['Where has {o} volunteered?'],
      distracting: ['They want to close {w}, there was a petition.', 'I walked past {w} and it was full of balloons.'],
    },
    {
      values: [
        'to open a bakery',
        'to write a novel',
        'to adopt a child',
        'to run for city council',
        'to get a pilot license',
        'to go back to college',
        'to build a tiny house',
        'to learn sign language',
      ],
      raised: ['What are your plans for next year?', 'Any big dreams or goals you have not told me?'],
      said: [
        "Don't laugh, but I have decided {v}. I even made a plan with dates.",
        'What would you do if you were not afraid?|Easy. I want {v}, and this year I will.',
        'I talked to the bank and to my family: I am going {v}.',
      ],
      asked: ['What are the plans of {o} for the future?', 'What does {o} dream of?', 'Would {o} be likely {v}?'],
      askedOfAll: ['What goals has {o} set?'],
      distracting: ['My sister wanted {w} for years and gave up.', 'I read an article about people who decide {w}.'],
    },
    {
      values: [
        'my sister Nora',
        'my uncle Ted',
        'my grandson Felix',
        'my niece Amy',
        'my father-in-law',
        'my twin brother',
        'my stepmother',
        'my godson Milo',
      ],
      raised: ['How is the family?', 'Any news from your relatives?'],
      said: [
        '{v} stayed with us over the holidays and we talked until dawn.',
        'You seem worried.|It is {v}, the surgery is on Monday. Keep your fingers crossed.',
        '{v} got engaged! The wedding is in the fall, by the lake.',
      ],
      asked: [
        'Who in the family of {o} had news?',
        'Which relative visited {o}?',
        'Whose wedding or operation did {o} mention?',
      ],
      distracting: [
        'Do you remember {w}? We ran into each other at the station.',
        'I owe {w} a phone call, now that you say it.',
      ],
    },
    {
      values: [
        'the flu',
        'a broken ankle',
        'migraines',
        'back pain',
        'a concussion',
        'insomnia',
        'a torn ligament',
        'high blood pressure',
      ],
      raised: ['You missed the party, is your health okay?', 'Did you see a doctor at last?'],
      said: [
        "I've been lying on the couch with {v} for days, I'm so bored.",
        "You haven't been at practice lately?|{v}. The physio says six more weeks.",
        'Finally saw a specialist about {v}, she gave me exercises.',
      ],
      asked: ['What health problems did {o} have?', 'When did {o} suffer from {v}?', 'Why did {o} see a doctor?'],
      distracting: ['Half of my team is out with {w}.', 'My mother swears by tea against {w}.'],
    },
    {
      values: [
        'a necklace',
        'a vintage camera',
        'a quilt',
        'a hand-painted bowl',
        'a signed record',
        'a pocket watch',
        'a telescope',
        'a fountain pen',
      ],
      raised: ['Did you get any nice gifts?', 'What was the best present this year?'],
      said: [
        'I found {v} in the attic, it belonged to my grandma from Sweden. It means the world to me.',
        'What did you get?|{v}! For my 40th, from everybody at the office.',
        'Someone left {v} at my door with a card. I am still speechless.',
      ],
      asked: ['Who gave {o} {v}?', 'What present did {o} receive?', 'What does {v} mean to {o}?'],
      askedOfAll: ['What gifts has {o} received?'],
      distracting: [
        'I nearly bought {w} online, but the shipping was crazy.',
        'They auctioned {w} for a fortune last week.',
      ],
    },
  ],
  smallTalk: [
    ['How have you been lately?', 'Pretty good, thanks! Busy but good. And you?'],
    ['The weather has been crazy this week.', 'Tell me about it, my umbrella gave up.'],
    ['Did you sleep well?', 'Like a baby, for once.'],
    ['I had the longest meeting of my life today.', 'Ugh, those drain me too. Coffee helps.'],
    ['Have you seen that new series everyone talks about?', 'Only the first episode, no spoilers please!'],
    ['My phone is acting up again.', 'Have you tried turning it off and on?'],
    ['Sorry for the late reply, work was a mess.', 'No worries at all, I know how that goes.'],
    ['I love how the garden looks in this season.', 'The colors are wonderful, take a picture for me.'],
    ['It means a lot that you are there for me.', 'Always. That is what friends are for.'],
    ['I was thinking about our school days.', 'Oh no, that haircut! Good times though.'],
    ['The train was late again.', 'It is a miracle when it is not.'],
    ['What are you up to this weekend?', 'Nothing much, just relaxing at home with the family.'],
    ['I should drink more water.', 'We all should, let us remind each other.'],
    ['The kids were so loud this morning.', 'Enjoy it, they grow up so fast.'],
    ['I need new running shoes.', 'There is a sale downtown, you should have a look.'],
    ['I am proud of how far we have come.', 'Me too! It took courage and a lot of support.'],
    ['Can you believe the year is nearly over?', 'Time flies. I still write the wrong date.'],
    ['I found an old photo of us at the lake.', 'Send it over, I want to see it!'],
  ],
  echoes: [
    'Funny, {v} came up at work today and I had to smile.',
    'Remember when we talked about {v}? Feels like ages ago.',
    'How is it going with {v}?',
    'I told my mother about {v}, she sends her love.',
    'Say hello to everyone, and do not forget about {v}!',
    'Still thinking about {v}, to be honest.',
  ],
  confirmations: [
    'Done, since Tuesday! I could hardly sleep the night before.',
    'Yes, it really happened, and I could not be happier.',
    'You will not believe it, it all worked out this week.',
    'It took me months, but as of yesterday I can say yes.',
    'Oh, I went for it in the end. My sister came along and took a hundred pictures.',
    'All true, and it was so much better than I had imagined!',
  ],
  fillers: [
    'By the way, what did you do when you were at the office with everybody the other day?',
    'You know how it is, when you have so much to do that you do not know where to start.',
    'Which reminds me of what you said the last time we met, and how right you were.',
    'What does one do on a day like this, when it does not stop raining?',
    'I would like to have done it all a lot sooner, if I am honest.',
    'When are you going to be in town, and where would you like to have lunch?',
    'It is who we are, and what we do with it is up to us.',
    'So that is how it was, and who would have thought of it?',
    'Did you get to see what they have done to the old school?',
    'Of all the things that I did this week it is the one that I like the most.',
    'I have been meaning to ask when you go to see your people again.',
    'Do not ask me why, it is what it is!',
    'What kind of a week was that, and what would I do without you?',
    'How many times did I say that I would take some time off?',
  ],
  openings: [
    'Hey {f}! Long time no talk.',
    'Hi {f}, good to see you!',
    'Hey {f}, what is new with you?',
    'Morning, {f}! Got a minute?',
    '{f}! I was just thinking of you.',
  ],
  reactions: [
    'Wow, {o}, that is awesome! Congrats!',
    'Oh, that is something. How do you feel about it?',
    "That's great to hear. What made you decide that?",
    'No way! Tell me more.',
    'Sounds like a lot. I am here if you need me.',
    "I'm so happy for you, {o}!",
  ],
  afterthoughts: [
    'It just felt right, you know? I had thought about it for a long time.',
    'Thanks! My family was really supportive the whole time.',
    'I will send you a picture later.',
    'It was scary at first, but worth it.',
    'Everyone has been so kind about it.',
    'I still have to get used to it, but so far so good.',
  ],
};

const german: Phrases = {
  names: 'Anna Bernd Christa Dieter Emma Fritz Greta Hannes Ines Jonas Katrin Lukas'.split(' '),
  domains: [
    {
      values: ['Leipzig', 'Freiburg', 'Kiel', 'Wien', 'Basel', 'Erfurt', 'Bremen', 'Graz'],
      raised: ['Wohnst du noch in der kleinen Wohnung?', 'Hat der Umzug in die andere Stadt geklappt?'],
      said: [
        'Wir sind endlich umgezogen, {v} ist jetzt unser Zuhause.',
        'Wie ist die neue Wohnung?|Herrlich, {v} gefällt uns sehr und die Nachbarn sind nett.',
      ],
      asked: ['Wo wohnt {o} jetzt?', 'In welche Stadt ist {o} umgezogen?'],
      distracting: ['Mein Vetter überlegt, nach {w} zu gehen.', 'Der Zug hielt ewig in {w}.'],
    },
    {
      values: [
        'Bäckerin',
        'Lehrer',
        'Tischler',
        'Krankenpfleger',
        'Försterin',
        'Buchhalter',
        'Dolmetscherin',
        'Gärtner',
      ],
      raised: ['Macht dir dein Beruf noch Freude?', 'Wo arbeitest du eigentlich jetzt?'],
      said: [
        'Ich habe die Stelle bekommen und arbeite ab Mai als {v}.',
        'Was machst du beruflich gerade?|Ich habe umgeschult, ich bin jetzt {v}, und die Kollegen sind prima.',
      ],
      asked: ['Welchen Beruf hat {o}?', 'Als was arbeitet {o}?'],
      distracting: ['Mein Opa war {w} bis zur Rente.', 'Im Fernsehen lief etwas über eine {w}.'],
    },
    {
      values: ['Geige', 'Klavier', 'Trompete', 'Gitarre', 'Schlagzeug', 'Flöte'],
      raised: ['Spielst du noch ein Instrument?', 'Du wolltest doch Musik machen?'],
      said: [
        'Seit dieser Woche lerne ich {v}, meine Finger tun weh.',
        'Was war das für ein Lärm?|Das war ich, ich übe jeden Abend {v}.',
      ],
      asked: ['Wann hat {o} angefangen, {v} zu lernen?'],
      askedOfAll: ['Welche Instrumente spielt {o}?'],
      distracting: ['Der Nachbar spielt nachts {w}.', 'Am Sonntag gibt es ein Konzert mit {w}.'],
    },
    {
      values: ['Island', 'die Nordsee', 'Südtirol', 'Marokko', 'die Bretagne', 'Schottland', 'Kreta', 'Japan'],
      raised: ['Wohin seid ihr in den Ferien gereist?', 'Wie war der Urlaub?'],
      said: [
        'Gestern aus dem Urlaub zurück, {v} war ein Traum!',
        'Wie waren die Ferien?|Wunderbar, wir sind sechs Tage gewandert. {v} ist unglaublich schön.',
      ],
      asked: ['Wann war {o} im Urlaub ({v})?', 'Was hat {o} in den Ferien gemacht?'],
      askedOfAll: ['Wohin ist {o} gereist?'],
      distracting: ['Flüge für {w} sind gerade billig.', 'Eine Kollegin schwärmt ständig: {w}, immer nur {w}.'],
    },
    {
      values: ['Nüsse', 'Milch', 'Erdbeeren', 'Weizen', 'Eier', 'Sellerie'],
      raised: [
        'Warum hast du beim Fest nichts gegessen, wegen der Allergie?',
        'Welche Lebensmittel verträgst du nicht?',
      ],
      said: [
        'Der Arzt hat angerufen: Ich vertrage {v} nicht.',
        'Magst du probieren?|Leider nein, {v} bekommen mir nicht, ich kriege Ausschlag davon.',
      ],
      asked: ['Worauf reagiert {o} allergisch?', 'Welche Lebensmittel muss {o} meiden?'],
      distracting: ['Ich habe zu viel {w} gekauft.', 'Im Rezept steht {w}, es geht aber auch ohne.'],
    },
  ],
  smallTalk: [
    ['Wie geht es dir?', 'Ganz gut, danke! Viel zu tun. Und dir?'],
    ['Das Wetter ist ja schrecklich.', 'Wem sagst du das, mein Schirm ist hin.'],
    ['Die Bahn kam wieder zu spät.', 'Ein Wunder, wenn sie es nicht tut.'],
    ['Entschuldige die späte Antwort.', 'Kein Problem, ich kenne das.'],
    ['Was machst du am Wochenende?', 'Nicht viel, nur ausruhen mit der Familie.'],
    ['Hast du gut geschlafen?', 'Wie ein Stein, endlich einmal.'],
  ],
  echoes: [
    'Meine Mutter fragt noch immer nach {v}.',
    'Weißt du noch, wie wir über {v} geredet haben?',
    'Und, wie läuft es mit {v}?',
  ],
  confirmations: [
    'Ja, seit Dienstag! Ich konnte kaum schlafen.',
    'Es hat wirklich geklappt, ich bin so froh.',
    'Am Ende habe ich mich getraut, und es war herrlich.',
  ],
  fillers: [
    'Was hast du eigentlich gemacht, als du neulich bei den anderen warst?',
    'Du weißt ja, wie das ist, wenn man nicht weiß, wo man anfangen soll.',
    'Wann bist du wieder hier, und wo wollen wir dann hin?',
    'Wer hätte das gedacht, und wie lange ist das jetzt her?',
  ],
  openings: ['Hallo {f}, lange nichts gehört!', 'Hey {f}, was gibt es Neues?'],
  reactions: ['Das ist ja toll, {o}!', 'Oh, wie fühlst du dich damit?', 'Wirklich? Erzähl mir mehr.'],
  afterthoughts: [
    'Meine Familie hat mir sehr geholfen.',
    'Ich schicke dir später ein Bild.',
    'Am Anfang war es schwer, aber es lohnt sich.',
  ],
};

export const PHRASES = { english, german };
