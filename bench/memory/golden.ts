/**
 * The golden sets of the memory benchmark.
 *
 * They were written by hand, without knowledge of the measured extractors, and are not copied from a dataset.
 */

/** One conversation, and the facts that a memory should keep of it. */
export interface GoldenConversation {
  /** The user's messages to an assistant: one or more. */
  readonly said: readonly string[];
  /** The facts that a careful person would keep for later conversations: short sentences in the third person; may be empty. */
  readonly expected: readonly string[];
}

/** One question whose answer is only in an earlier session. */
export interface GoldenTask {
  /** The user's messages in one to three earlier sessions, oldest first; each session has one or more. */
  readonly sessions: readonly (readonly string[])[];
  /** The user's question, much later. */
  readonly question: string;
  /** The text that a correct answer contains. It occurs in exactly one earlier message, and not in the question. */
  readonly answer: string;
}

/** Conversations: 25 with nothing worth keeping, then 35 with one to three facts. */
export const CONVERSATIONS: readonly GoldenConversation[] = [
  // Nothing worth keeping: small talk and thanks (4).
  {
    said: ['Hi there, how are you doing this morning?', 'Good to hear, I just wanted to see whether this thing works.'],
    expected: [],
  },
  {
    said: ['Thanks, that was exactly what I was looking for!', 'Have a nice weekend, see you soon.'],
    expected: [],
  },
  {
    said: [
      'It has been raining all day and the bus was late again.',
      'Tell me a joke to cheer me up.',
      'Ha, that one was terrible. Another one, please!',
    ],
    expected: [],
  },
  {
    said: ['Did you know that octopuses have three hearts?', 'I could use a spare one on Monday mornings.'],
    expected: [],
  },
  // Nothing worth keeping: questions (5).
  {
    said: ['What is the difference between baking soda and baking powder?'],
    expected: [],
  },
  {
    said: ['Can you convert 350 degrees Fahrenheit to Celsius for me?', 'Perfect, and what is that as a gas mark?'],
    expected: [],
  },
  {
    said: ['How long does it take to fly from Lisbon to Toronto?', 'And is there a direct flight in winter?'],
    expected: [],
  },
  {
    said: ['What would a vegetarian eat at a barbecue, just out of curiosity?', 'And a friend who cannot have gluten?'],
    expected: [],
  },
  {
    said: [
      'Why does this function print undefined instead of the sum?',
      'Ah, I forgot the return. Never mind, it works now.',
    ],
    expected: [],
  },
  // Nothing worth keeping: one-off wishes (4).
  {
    said: ['Make this answer a bit shorter, please, it does not fit on the slide.'],
    expected: [],
  },
  {
    said: ['I feel like having soup tonight, any quick idea?', 'Sounds good, I will try the one with leeks.'],
    expected: [],
  },
  {
    said: [
      'For this one table, use commas as decimal separators.',
      'No, back to points, only the dates should change.',
      'Great, now sort it by the second column.',
    ],
    expected: [],
  },
  {
    said: ['Write a cover letter for an imaginary applicant called Priya with six years in retail.'],
    expected: [],
  },
  // Nothing worth keeping: the words of others, and texts to work on (5).
  {
    said: ["Please shorten this sentence: 'I have lived in Rome for ten years and I adore the light there.'"],
    expected: [],
  },
  {
    said: ["Translate into Spanish: 'My name is Edgar and I work as a nurse in Leeds.'"],
    expected: [],
  },
  {
    said: [
      "A guy on the radio said, 'I never eat before noon and I feel fantastic.'",
      'Is there any science behind that?',
    ],
    expected: [],
  },
  {
    said: ["In the novel, the hero says: 'I am allergic to small towns.' What does the author want to tell us?"],
    expected: [],
  },
  {
    said: [
      "My taxi driver told me, 'I moved here from Eritrea in 2009 and have never looked back.'",
      'What languages do people speak there?',
    ],
    expected: [],
  },
  // Nothing worth keeping: hypotheticals and play (3).
  {
    said: ['If I had a boat, I would name her Marigold and sail to Madeira. But seriously, how do tides work?'],
    expected: [],
  },
  {
    said: ['Suppose someone earns 52,000 a year and has two children, how much tax would they pay in Ireland?'],
    expected: [],
  },
  {
    said: [
      "Let us play a game. You are a ship's captain and I am a pirate with a wooden leg who hates parrots.",
      'Arr, hand over the treasure, or you walk the plank!',
    ],
    expected: [],
  },
  // Nothing worth keeping: sarcasm (3).
  {
    said: ['My horoscope says that I will be a millionaire by Friday. Sure, and pigs will fly past the window.'],
    expected: [],
  },
  {
    said: [
      'Oh great, another software update. I just love waiting forty minutes in front of a progress bar.',
      'Anyway, how do I pause it?',
    ],
    expected: [],
  },
  {
    said: [
      'Yes, because nothing says romance like a leaf blower at six in the morning.',
      'What is the legal noise limit on Sundays?',
    ],
    expected: [],
  },
  // Nothing worth keeping: facts about the world (1).
  {
    said: ['The Danube flows through more countries than any other river, I read today.', 'Which capitals lie on it?'],
    expected: [],
  },

  // Facts: said plainly (12).
  {
    said: ['How early must I check in to choose a seat? I always take the aisle because of my long legs.'],
    expected: ['The user prefers aisle seats.', 'The user has long legs.'],
  },
  {
    said: [
      'I teach chemistry at a secondary school in Ghent.',
      'Could you suggest an experiment with red cabbage for twelve-year-olds?',
    ],
    expected: ['The user teaches chemistry at a secondary school in Ghent.'],
  },
  {
    said: [
      'Hello again! Lovely weather for once.',
      'We adopted a beagle puppy last week, he is called Waffle.',
      'How often does he have to go out at night?',
      'Thanks, that is about what I feared.',
    ],
    expected: ['The user has a beagle puppy called Waffle.'],
  },
  {
    said: [
      'I started as a product manager at a small solar company in March.',
      'How do I say no to feature requests without offending the sales people?',
    ],
    expected: ['The user has been a product manager at a small solar company since March.'],
  },
  {
    said: [
      'My doctor put me on 50 milligrams of sertraline every morning.',
      'Is it alright to drink grapefruit juice with it?',
    ],
    expected: ['The user takes 50 milligrams of sertraline every morning.'],
  },
  {
    said: [
      'I am in the second year of a nursing degree in Cork.',
      'The pharmacology exam is on 14 May, can you make me a plan for the weeks until then?',
    ],
    expected: [
      'The user is in the second year of a nursing degree in Cork.',
      'The user has a pharmacology exam on 14 May.',
    ],
  },
  {
    said: [
      'I want to run the Valencia marathon in under four hours this December.',
      'Right now I manage about thirty kilometres a week.',
      'Is that realistic, in your view?',
    ],
    expected: [
      'The user wants to run the Valencia marathon in under four hours in December.',
      'The user runs about thirty kilometres a week.',
    ],
  },
  {
    said: [
      'My laptop is a ThinkPad that runs Fedora.',
      'Since yesterday the wifi drops every few minutes, where do I look first?',
    ],
    expected: ['The user has a ThinkPad laptop that runs Fedora.'],
  },
  {
    said: ['From now on, please answer me in British English and without bullet points.'],
    expected: ['The user wants answers in British English.', 'The user wants answers without bullet points.'],
  },
  {
    said: [
      'My favourite composer is Sibelius, and I have heard all the symphonies twice.',
      'What should I listen to next?',
    ],
    expected: ["The user's favourite composer is Sibelius."],
  },
  {
    said: [
      'Coffee after lunch keeps me awake, so for years I have had none past noon.',
      'What else could I change to sleep better?',
    ],
    expected: ['The user drinks no coffee after noon because it keeps them awake.'],
  },
  {
    said: [
      'I collect fountain pens, mostly Japanese ones from the seventies.',
      'My best find so far was a Pilot at a flea market in Lille.',
      'How do I get dried ink out of a feed?',
    ],
    expected: ['The user collects fountain pens, mostly Japanese ones from the 1970s.'],
  },
  // Facts: corrected within the conversation (7).
  {
    said: [
      'A question about payroll: I run a bakery with six employees.',
      'Sorry, seven, I keep forgetting the new apprentice.',
    ],
    expected: ['The user runs a bakery with seven employees.'],
  },
  {
    said: [
      'My sister has her birthday on 3 June.',
      "Wait, that is my cousin. My sister's is on the 13th of June.",
      'What could I give each of them?',
    ],
    expected: ["The user's sister has her birthday on 13 June.", "The user's cousin has a birthday on 3 June."],
  },
  {
    said: ['You can call me Jonathan, by the way.', 'Actually, Jon is better, only my mother uses the long form.'],
    expected: ['The user wants to be called Jon.'],
  },
  {
    said: [
      'I am learning Portuguese because I have been offered a job in Brazil.',
      'Where would you start with the verbs?',
      'They have just withdrawn the offer, but I will keep up the Portuguese anyway.',
    ],
    expected: ['The user is learning Portuguese.'],
  },
  {
    said: [
      'We are moving to Leipzig in October, my partner and I.',
      'Stop, she just got the better offer, so it will be Dresden after all. The month stays the same.',
    ],
    expected: ['The user is moving to Dresden with their partner in October.'],
  },
  {
    said: [
      'For the training plan: I am free on Tuesdays and Thursdays.',
      'Hmm, Thursday is choir. Make it Tuesdays and Saturdays, every week.',
    ],
    expected: ['The user can train on Tuesdays and Saturdays.', 'The user has choir on Thursdays.'],
  },
  {
    said: [
      'My budget for the new kitchen is twenty thousand euros.',
      'I talked to the bank, and fifteen thousand is the ceiling now.',
      'Which worktop would you take for that?',
    ],
    expected: ["The user's budget for a new kitchen is fifteen thousand euros."],
  },
  // Facts: negations (6).
  {
    said: ['I do not drink alcohol, so skip the wine pairing, please.', 'What goes with roast duck instead?'],
    expected: ['The user does not drink alcohol.'],
  },
  {
    said: ['No, I never learned to drive. How do people get to the cabins by train and bus?'],
    expected: ['The user cannot drive.'],
  },
  {
    said: ['We have neither an oven nor a microwave here, so keep the recipes to the stove, would you?'],
    expected: ['The user has no oven.', 'The user has no microwave.'],
  },
  {
    said: [
      'I am no longer with Meridian Bank, I closed that account in spring.',
      'Everything goes through my credit union now.',
      'How do I change the direct debit for the electricity?',
    ],
    expected: ['The user no longer has an account at Meridian Bank.', 'The user banks with a credit union.'],
  },
  {
    said: [
      'Please stop suggesting podcasts to me, I cannot stand listening to people talk.',
      'Books are welcome at any time.',
    ],
    expected: ['The user does not want podcast suggestions.', 'The user welcomes book suggestions.'],
  },
  {
    said: ['People take me for a vegetarian because I order salads. I am not, I just do not like pork.'],
    expected: ['The user is not a vegetarian.', 'The user does not like pork.'],
  },
  // Facts: implied by a remark (6).
  {
    said: ['Is there a version of this curry without peanuts? I get hives and a swollen throat from them.'],
    expected: ['The user is allergic to peanuts.'],
  },
  {
    said: ['After a night shift on the ward I can never fall asleep.', 'What do other nurses do about that?'],
    expected: [
      'The user is a nurse.',
      'The user works night shifts.',
      'The user cannot fall asleep after night shifts.',
    ],
  },
  {
    said: [
      "Third floor, no lift, and now I have to get our daughter's pram up there twice a day.",
      'Is there a folding model under eight kilos?',
    ],
    expected: ['The user lives on the third floor without a lift.', 'The user has a baby daughter.'],
  },
  {
    said: [
      "When the kids are at their father's, every other weekend, the flat is far too quiet.",
      'What could I take up on those two days?',
    ],
    expected: ["The user's children are with their father every other weekend.", 'The user lives in a flat.'],
  },
  {
    said: ['In my chair I need eighty centimetres at every door. Are the ones in the Bilbao museum that wide?'],
    expected: ['The user uses a wheelchair.', 'The user needs doors at least eighty centimetres wide.'],
  },
  {
    said: [
      'Now that the chemo is behind me, my hair is coming back in curls.',
      'Is that common, and will it stay that way?',
    ],
    expected: ['The user has finished chemotherapy.'],
  },
  // Facts: about other people who matter to the user (4).
  {
    said: [
      'My son Emil is six and has just been diagnosed with type 1 diabetes.',
      'What can he eat at a birthday party?',
    ],
    expected: ['The user has a six-year-old son called Emil.', "The user's son Emil has type 1 diabetes."],
  },
  {
    said: ['My boss Renate reads nothing longer than half a page. Can you cut this report down accordingly?'],
    expected: ["The user's boss is called Renate.", "The user's boss reads nothing longer than half a page."],
  },
  {
    said: [
      'Mum moved into a care home in York in January.',
      'She has dementia and does not always know me any more.',
      'How do I talk to her on the bad days?',
      'Thank you, that was kind.',
    ],
    expected: ["The user's mother lives in a care home in York.", "The user's mother has dementia."],
  },
  {
    said: [
      'My husband keeps kosher, I do not, but at home we cook so that he can eat everything.',
      'What could I make for twelve people on Friday?',
    ],
    expected: ["The user's husband keeps kosher.", 'The user does not keep kosher.', 'The user cooks kosher at home.'],
  },
];

/**
 * Tasks: 20 whose question shares a content word with the message that holds the answer, 20 that share only an
 * inflected form, and 20 paraphrases that share no content word. In 16 of them an earlier answer changed later.
 */
export const TASKS: readonly GoldenTask[] = [
  // The question shares a content word with the message (20; 6 of them changed later).
  {
    sessions: [
      [
        'My dentist is Dr. Okafor on Mill Lane, she is wonderful with nervous people.',
        'The eye doctor is another story, Dr. Lindqvist is always in a hurry.',
      ],
      ['I have to find a new vet for the cat.', 'The last one, Dr. Bose, has retired.'],
    ],
    question: 'What was the name of my dentist again?',
    answer: 'Okafor',
  },
  {
    sessions: [
      ["I work at the Harrow branch of the library, mostly with children's books."],
      ['My brother has found a job at the airport in Luton.'],
      [
        'Big news, as of Monday I work at the Pinner branch instead.',
        'The way there is a little longer, but the team is nice.',
      ],
    ],
    question: 'At which library branch am I employed?',
    answer: 'Pinner',
  },
  {
    sessions: [
      [
        'The wifi password of the cottage is on the fridge.',
        'The key for the cottage lies under the blue pot.',
        'The neighbour, Mrs. Dunne, lets the gas man in.',
      ],
      ['Our flat in town got a new lock today.', 'My son lost his keys at school again.'],
    ],
    question: 'Where did I say that the key of the cottage is?',
    answer: 'blue pot',
  },
  {
    sessions: [
      ['I used to blow the trombone in the army band.'],
      [
        'My daughter Freya plays the cello, and her little brother wants drums, heaven help us.',
        'Freya has a swimming lesson on Wednesdays.',
      ],
    ],
    question: 'Which instrument does Freya practise?',
    answer: 'cello',
  },
  {
    sessions: [
      ["For our anniversary I booked a table at Luca's.", 'Which flowers would you bring along?'],
      ["For my mother's birthday we will go to the Golden Carp."],
      ['They cancelled on us, so the anniversary dinner is at Tamarind now.'],
    ],
    question: 'Which restaurant is our anniversary meal at?',
    answer: 'Tamarind',
  },
  {
    sessions: [
      [
        'The car takes E10 fuel, not diesel.',
        'My car needs a check every 15,000 kilometres, the garage wrote it into the manual.',
        'Last month we drove 2,300 kilometres through Scotland.',
      ],
      ["My wife's scooter runs on batteries."],
    ],
    question: 'After how many kilometres is the car due for its inspection?',
    answer: '15,000',
  },
  {
    sessions: [
      ['Professor Whitlock teaches the statistics course, and I struggle with it.'],
      [
        'My thesis is about moss on city roofs, and I write it with Professor Anand.',
        'The seminar on lichens starts in April.',
      ],
      ['The library wants two books back by Friday.'],
    ],
    question: 'Who supervises my thesis?',
    answer: 'Anand',
  },
  {
    sessions: [
      ['My gym locker code is 4471.', 'The alarm at the office is switched off with 9023.'],
      ['They gave me another locker at the gym, the code is 6608 now.'],
      ['The bike lock has letters instead of numbers, a nuisance.'],
    ],
    question: 'Which digits open my locker?',
    answer: '6608',
  },
  {
    sessions: [
      ['Hay fever bothers me from March to May.', 'I am allergic to penicillin, it gave me a rash as a child.'],
      ['Ibuprofen is fine for my back pain.', 'My brother swears by aspirin.'],
    ],
    question: 'Which antibiotic am I allergic to?',
    answer: 'penicillin',
  },
  {
    sessions: [
      [
        'I wear a cheap Casio when I go swimming.',
        "Grandpa's watch was made by a firm called Dugena, and it still runs.",
        'The clock in the kitchen is from a flea market.',
      ],
    ],
    question: 'What brand is the watch that I inherited?',
    answer: 'Dugena',
  },
  {
    sessions: [
      ['The sales people have their own meeting, in Rotterdam.'],
      [
        'Last year the whole team was in Antwerp, and the food was awful.',
        'This time the offsite takes place in Utrecht, two days in a former monastery.',
      ],
      ['I still need a room for the workshop with the interns.'],
    ],
    question: 'Which city did we choose for the offsite?',
    answer: 'Utrecht',
  },
  {
    sessions: [
      ['My piano lesson is on Monday at five.', 'Yoga stays on Sunday morning.'],
      ['The teacher moved my piano lesson to Friday for the rest of the year.'],
      ['On Tuesday the children have football.'],
    ],
    question: 'On which day do I have my piano class?',
    answer: 'Friday',
  },
  {
    sessions: [
      [
        'Warranty slips go into the shoebox.',
        'The green folder is for insurance.',
        'The tax papers are in the purple folder.',
      ],
      ['I throw away bank statements after ten years.', 'My wife sorts her letters by date.'],
    ],
    question: 'What colour is the folder for tax matters?',
    answer: 'purple',
  },
  {
    sessions: [
      ['My nephew Max is mad about fire engines.', 'His sister Tilda is afraid of clowns, so no circus for her.'],
      ['Our cat flees from the vacuum cleaner.', 'Tilda will be seven in July.'],
    ],
    question: 'What frightens Tilda?',
    answer: 'clowns',
  },
  {
    sessions: [
      ['I sit at a desk about nine hours a day.'],
      [
        'My optician wants me to get progressive lenses.',
        'Against headaches a walk helps me more than any tablet.',
        'For my back I do gymnastics on a mat.',
      ],
    ],
    question: 'What is good for my headaches?',
    answer: 'walk',
  },
  {
    sessions: [
      ['My landlord is called Mr. Petrov, he lives downstairs.', 'The heating is slow again.'],
      ['The house was sold, so my landlord is now a Mrs. Achterberg.', 'The caretaker, Mr. Quill, stays.'],
    ],
    question: 'Who is my landlord these days?',
    answer: 'Achterberg',
  },
  {
    sessions: [
      ['The scanner broke down last week.'],
      [
        'The printer in the office takes toner, I do not know which.',
        'The printer in my study takes 302XL cartridges.',
        'Paper I order by the box, 80 grams.',
      ],
    ],
    question: 'What ink do I buy for the printer at home?',
    answer: '302XL',
  },
  {
    sessions: [
      ['My first half marathon was in Bath, years ago.'],
      [
        'In October I am going to run the ten miles of Portsmouth.',
        'The only full marathon that I ever ran was in Ljubljana, and it rained all the way.',
      ],
      ['My new shoes are a size too small.'],
    ],
    question: 'Where did I complete a full marathon?',
    answer: 'Ljubljana',
  },
  {
    sessions: [
      [
        "My grandmother's plum cake has cardamom in it instead of cinnamon.",
        'Her apple cake had nutmeg in it.',
        'I bake with spelt flour whenever I can.',
      ],
      ['Yeast never works in my hands.', 'How long do plums keep in the fridge?'],
    ],
    question: 'Which spice goes into the plum cake?',
    answer: 'cardamom',
  },
  {
    sessions: [
      ['I take the 7:12 train to the office, from platform two.', 'My colleague Sanjay comes by bike.'],
      ['The bus to the swimming pool goes at 9:05.'],
      ['New timetable: the train that I take in the morning leaves at 7:31 from now on.'],
    ],
    question: 'When does my morning train depart?',
    answer: '7:31',
  },

  // The question shares only an inflected form with the message (20; 5 of them changed later).
  {
    sessions: [
      ['My parents had their wedding in Swindon, of all places.'],
      ['We got married in Ravello, under lemon trees.', 'The honeymoon was in Apulia, in a hut of stone.'],
    ],
    question: 'Where did my husband and I marry?',
    answer: 'Ravello',
  },
  {
    sessions: [
      ['I am studying geology in Glasgow, first semester.', 'The canteen is better than I thought.'],
      ['My roommate is going to be an architect.'],
      ['I switched subjects, and now I study linguistics.'],
    ],
    question: 'What am I studying at university?',
    answer: 'linguistics',
  },
  {
    sessions: [
      ['The knee is a souvenir from skiing.'],
      [
        'My physiotherapist says that my shoulder is too stiff.',
        'I broke my wrist when I fell off a ladder in 2019.',
        'The ankle has been fine since the operation.',
      ],
    ],
    question: 'Which bone did I break in a fall?',
    answer: 'wrist',
  },
  {
    sessions: [
      ['Cherries from our garden are fine.', 'Strawberries gave me a rash twice, so I leave them alone.'],
      ['I planted two currant bushes in March.', 'The apples were small this year.'],
    ],
    question: 'Which fruit gives me rashes?',
    answer: 'Strawberries',
  },
  {
    sessions: [
      ["Uncle Theo calls everyone 'chief'."],
      [
        'The kids call their grandmother Nonna, since she is from Bari.',
        'My own grandmother was just Gran.',
        'Grandpa answers to nothing but his first name, Otto.',
      ],
    ],
    question: 'Which nickname are my children calling grandma by?',
    answer: 'Nonna',
  },
  {
    sessions: [
      ['I drive an old Volvo, it is older than my sister.', 'My father still has his Saab.'],
      ['The old car is gone, since June I have been driving a Skoda.'],
      ['My wife wants an electric bike for her way to the office.'],
    ],
    question: 'What make of vehicle do I drive?',
    answer: 'Skoda',
  },
  {
    sessions: [
      ['For the roof we had Kowalski, never again.', 'Our heating is serviced by Brandt, a family firm.'],
      ['A plumber from the next village repaired the tap.', 'The chimney sweep comes in November.'],
    ],
    question: 'Which company services the boiler?',
    answer: 'Brandt',
  },
  {
    sessions: [
      [
        'Gwen borrowed the camping stove.',
        'The sleeping bags are in the attic.',
        'I lent my tent to Ricardo, he wanted to take it to Norway.',
      ],
      ['Jasper gave me back the drill, without the case.'],
    ],
    question: 'Whom did I lend one of our tents?',
    answer: 'Ricardo',
  },
  {
    sessions: [
      ['The coach to Heathrow takes three hours.'],
      [
        'My sister prefers Gatwick when she travels.',
        'My flights always leave from Stansted, it is the only airport that I reach by bus.',
      ],
      ['I never check in a suitcase.'],
    ],
    question: 'Where do I usually go for a flight?',
    answer: 'Stansted',
  },
  {
    sessions: [
      ['The doctor prescribed lisinopril for my blood pressure.', 'For my stomach there is omeprazole.'],
      ['Because of the cough she prescribed me losartan instead.'],
      ['My husband takes iron, on his own account.'],
    ],
    question: 'Which pills against high blood pressure does the doctor prescribe?',
    answer: 'losartan',
  },
  {
    sessions: [
      ['Wasps leave me alone for some reason.'],
      [
        'Bees stung me in the orchard, and the swelling lasted ten days.',
        'A jellyfish got my cousin on the beach in Croatia.',
      ],
      ['The mosquitoes in our bedroom are a plague.'],
    ],
    question: 'Where was I when a bee attacked?',
    answer: 'orchard',
  },
  {
    sessions: [
      ['I know a translator called Sergei, he is very strict.', 'I proofread the novels of Bettina, unpaid of course.'],
      ['I read crime stories on trains only.', 'My own poems stay in the drawer.'],
    ],
    question: 'Whose novel am I checking for mistakes?',
    answer: 'Bettina',
  },
  {
    sessions: [
      [
        'The choir has a group on Signal.',
        'With my parents I talk on the landline, believe it or not.',
        'We meet the client on Zoom, he insists on it.',
      ],
      ['Inside the company everything happens on Slack.'],
    ],
    question: 'Which tool are we using for meetings with the customer?',
    answer: 'Zoom',
  },
  {
    sessions: [
      ['I am saving for a camper van, two hundred a month.'],
      ['My wife would rather have a pond in the garden.'],
      [
        'The van can wait, I save everything for a sauna now.',
        'The roof must be done as well, but the insurance pays for that.',
      ],
    ],
    question: 'What am I saving up for?',
    answer: 'sauna',
  },
  {
    sessions: [
      ['Our last dog came from a shelter in Sligo.'],
      [
        'The puppies were born in a shed in Kilkenny, we took the smallest.',
        'The vet thinks that he will weigh twenty kilos.',
        'My sister has a cat from Galway.',
      ],
    ],
    question: 'Which county is our puppy from?',
    answer: 'Kilkenny',
  },
  {
    sessions: [
      ['My aunt keeps her savings under the mattress.'],
      ['My mother has hidden the spare money in a teapot, since her flat was robbed.', 'Her jewels are at the bank.'],
      ['Dad pays for everything by card these days.'],
    ],
    question: 'Where does mum hide her cash?',
    answer: 'teapot',
  },
  {
    sessions: [
      ['Rowing on the Wye was more of a disaster.', 'I swam right across Lake Bohinj at twenty.'],
      ['This summer I would like to canoe on the Dordogne.', 'The pool in our street is closed until May.'],
    ],
    question: 'In which waters did I swim when I was young?',
    answer: 'Bohinj',
  },
  {
    sessions: [
      ['I report to Samantha, the head of logistics.', 'We are eleven people on the floor.'],
      ['Samantha went to the Madrid office.'],
      ['After the reorganisation I have reported to Dmitri since May.', "The desk next to mine is Olga's."],
    ],
    question: 'Who do I report to?',
    answer: 'Dmitri',
  },
  {
    sessions: [
      [
        'The gallery on the harbour said no.',
        'My paintings hang in a café called Zimt, three of them are even sold.',
        'I paint in oil mostly, never in acrylics.',
      ],
      ['The town hall shows the photos of my neighbour.'],
    ],
    question: 'Which place shows a painting of mine?',
    answer: 'Zimt',
  },
  {
    sessions: [
      ["Ida's best friend must not have eggs."],
      ['Ida gets an apple on Fridays.', 'Nuts were banned at the kindergarten, so I pack sunflower seeds.'],
      ['For the trip to the zoo she needs rubber boots.', 'I make the bread myself.'],
    ],
    question: 'What goes into the lunch box instead of a nut bar?',
    answer: 'sunflower',
  },

  // The question shares no content word with the message (20; 5 of them changed later).
  {
    sessions: [
      ['I live in Bergen, right by the fish market.'],
      ['We have left the coast and settled down in Lillehammer.', 'My parents stay in their town by the sea.'],
    ],
    question: 'In what town is my home?',
    answer: 'Lillehammer',
  },
  {
    sessions: [
      [
        'Spicy food is no problem at all.',
        'I cannot have anything with milk in it, my stomach rebels.',
        'My boyfriend dislikes mushrooms.',
      ],
      ['Which ingredient makes a stew thick without flour?'],
    ],
    question: 'Which ingredient do I not tolerate?',
    answer: 'milk',
  },
  {
    sessions: [
      ['My own birthday is in August, in the worst heat.'],
      [
        'Our little one arrived on the ninth of February, three weeks early.',
        'My sister is getting married in October.',
      ],
      ['What do you give a godfather for his birthday?'],
    ],
    question: "When is the baby's birthday?",
    answer: 'February',
  },
  {
    sessions: [
      ['My brother is a teacher, he has the better hours.', 'I make my living as a locksmith, mostly at night.'],
      ['I did a course in bookkeeping once.', 'My father wanted me to be a notary.'],
    ],
    question: 'What is my profession?',
    answer: 'locksmith',
  },
  {
    sessions: [
      ['I am with Vodafone, and the reception in the valley is awful.', 'My mobile is four years old.'],
      ['I have had enough, so I signed with Telenor.'],
      ["The internet at home is from the town's own cable company."],
    ],
    question: 'Who is my mobile phone provider?',
    answer: 'Telenor',
  },
  {
    sessions: [
      ['On trains I listen to jazz.', 'Every evening I go through a few pages of Tolstoy until my eyes close.'],
      ['I gave up on that thick book by Joyce.', 'My wife reads a newspaper in bed, the rustling!'],
    ],
    question: 'Which author do I read before I fall asleep?',
    answer: 'Tolstoy',
  },
  {
    sessions: [
      ['We met at a conference in Geneva.'],
      [
        'My own people are all from Devon.',
        'My better half comes from Nairobi, her family is still there.',
        'Our son was born in Bristol.',
      ],
    ],
    question: 'Where was my wife born?',
    answer: 'Nairobi',
  },
  {
    sessions: [
      ['Spiders and snakes do not impress me.', 'Heights make my knees tremble, even a stepladder is too much.'],
      ['Flying is fine if I sit in the middle.', 'My son is scared of the dark.'],
    ],
    question: 'What am I scared of?',
    answer: 'Heights',
  },
  {
    sessions: [
      ['The parrot next door, Coco, swears in Dutch.'],
      [
        'We thought about a tortoise, but no.',
        'The old terrier is called Biscuit and steals socks.',
        "My mother's dog sleeps on the sofa.",
      ],
    ],
    question: "What is my dog's name?",
    answer: 'Biscuit',
  },
  {
    sessions: [
      ['We want to spend the summer holidays in Iceland.', 'What does a rental car cost there?'],
      ['My colleague is off to Greece in June.'],
      ['Iceland is too dear, so we will rent a hut in Slovenia in July.'],
    ],
    question: 'What is the destination of our summer vacation?',
    answer: 'Slovenia',
  },
  {
    sessions: [
      ['My right eye needs glasses, the other one does not.', 'Since the explosion I hear nothing on the left.'],
      ['The doctor says that my blood values are good.', 'My aunt got a new hearing aid.'],
    ],
    question: 'On which side am I deaf?',
    answer: 'left',
  },
  {
    sessions: [
      ['My tax refund finally came.'],
      [
        'Ralf paid for the drinks, we are even.',
        'I owe Beatrice eighty euros for the concert tickets.',
        'The loan for the car is paid off, and I have no other debt at the bank.',
      ],
    ],
    question: 'Which friend do I have a debt with?',
    answer: 'Beatrice',
  },
  {
    sessions: [
      ['On Mondays we are closed.', 'I get up at half past four, because the ovens must be hot by six.'],
      ['I go to bed when the children do.', "My wife's alarm clock plays birdsong."],
    ],
    question: 'When does my alarm clock ring?',
    answer: 'half past four',
  },
  {
    sessions: [
      ['My camera is a Nikon, a gift from my uncle.', 'I mostly photograph herons and other birds.'],
      ['I sold all the lenses and take my pictures with a Leica now.', 'The tripod I kept.'],
      ['My daughter films everything with her phone.'],
    ],
    question: 'What camera do I own?',
    answer: 'Leica',
  },
  {
    sessions: [
      ['My flatmate grills sausages on the balcony every weekend.'],
      [
        'Cheese I could eat all day.',
        'I never touch meat, but for salmon I make an exception.',
        'The aquarium is his as well, with six fish.',
      ],
    ],
    question: 'What kind of fish am I willing to eat?',
    answer: 'salmon',
  },
  {
    sessions: [
      ['The middle one wants to be a vet.', 'Our eldest has started at the conservatory, she lives for her harp.'],
      ['The youngest broke a window with a football.', 'I never learned to play an instrument.'],
    ],
    question: 'Which instrument does my first child play?',
    answer: 'harp',
  },
  {
    sessions: [
      [
        'The car papers are in the glove box.',
        'I put the passports behind the encyclopedia, thieves never look there.',
        'I ought to scan all our certificates.',
      ],
      ['How do I travel with a cello?', 'My father hid sweets in the piano.'],
    ],
    question: 'Where are our travel documents hidden?',
    answer: 'encyclopedia',
  },
  {
    sessions: [
      ['My sport is karate, on Tuesdays, with the old crowd.'],
      ['My son goes climbing twice a week.'],
      ['My hip said no to all that kicking, so I have taken up archery.', 'My doctor is pleased.'],
    ],
    question: 'What sport do I practise?',
    answer: 'archery',
  },
  {
    sessions: [
      [
        'With my colleague Carla I get along splendidly.',
        'The new intern, Pia, is very quick.',
        'I blew up at Henning in front of everyone, and we have not exchanged a word since.',
      ],
      ['Lunch with Viktor was fun as always.'],
      ['My sister and her husband quarrel about the dog.', 'The office moves to the third floor in May.'],
    ],
    question: 'Which colleague did I quarrel with?',
    answer: 'Henning',
  },
  {
    sessions: [
      [
        'Cats and dust do nothing to me.',
        'When the birches are in bloom, my eyes stream and I sneeze all night.',
        'My nose was broken twice at school.',
      ],
      [
        'I had a fever of 39 degrees last week.',
        'How do you cut hay with a scythe?',
        'The fruit trees behind the house need pruning.',
      ],
    ],
    question: 'Which trees cause my hay fever?',
    answer: 'birches',
  },
];
