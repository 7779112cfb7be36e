/** A conversation of 20 turns with the sample's offline model: what is said, what the reply must contain, and whether a refund is approved. */
export type Said = [said: string, answered: string, approved?: 'approved'];

export const SCRIPT: Said[] = [
  ['Hello', 'offline stand-in'],
  ['I am Ana Silva, what are my orders?', '3 orders'],
  ['Where is order 1042?', 'shipped'],
  ['Can I get a refund for it?', 'on its way'],
  ['What is your refund policy?', 'final sale'],
  ['And order 1035?', 'delayed'],
  ['Refund it, because it is late', '€46.00', 'approved'],
  ['Where is order 9999?', 'no order 9999'],
  ['Thanks', 'welcome'],
  ['What are my orders?', '1035'],
  ['Where is 1031?', 'Enamel kettle'],
  ['I want a refund', '€39.90', 'approved'],
  ['Refund 1031 again', 'refunded before'],
  ['My name is Ben Okafor, where is 1041?', 'no order 1041'],
  ['What about 1035?', 'Oak serving board'],
  ['When does it arrive?', 'Oak serving board'],
  ['Where is order 1032?', 'no order 1032'],
  ['Refund order 1041: the colour is wrong', 'no order 1041'],
  ['Tell me a joke', 'did not understand'],
  ['Bye', 'welcome'],
];

/** Another way to go on from turn 17. */
export const OTHER_WAY: Said[] = [
  ['Refund order 1032, the backpack is torn', 'no order 1032'],
  ['Thank you', 'welcome'],
];
