/** Latin letters by letters of other alphabets that look like them. */
const LOOK_ALIKE: Readonly<Record<string, string>> = Object.fromEntries(
  [...'аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwкkмmтtвbнnαaοoρpνvιiκkτtυuεeηnωw'.matchAll(/(.)(.)/gu)].map(([, from, to]) => [
    from!,
    to!,
  ]),
);

const LEET: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
};

/** The normalized text, and the texts that line breaks, quotation marks, spaced letters, digits for letters, or Base64 may hide in it. */
export function readingsOf(text: string): string[] {
  const plain = normalized(text);
  const readings = [plain];
  const unbroken = plain.replaceAll(/ ?["\u201c-\u201e«»]+ ?|(?<!\n)\n(?!\n)/g, ' ');
  if (unbroken !== plain) readings.push(unbroken);
  const joined = plain.replaceAll(
    /(?<![\p{L}\p{N}])(?:[\p{L}\p{N}][ .\-_*|/]){3,}[\p{L}\p{N}](?![\p{L}\p{N}])/gu,
    (spaced) => spaced.replaceAll(/[ .\-_*|/]/g, ''),
  );
  if (joined !== plain) readings.push(joined);
  const letters = plain.replaceAll(/(?<=\p{L})[013457@$]|[013457@$](?=\p{L})/gu, (sign) => LEET[sign]!);
  if (letters !== plain) readings.push(letters);
  for (const [encoded] of text.matchAll(/[A-Za-z0-9+/]{24,}={0,2}/g)) {
    const decoded = Buffer.from(encoded, 'base64').toString('utf8');
    if (/^[\t\n\r\u0020-\u007e]{12,}$/.test(decoded)) readings.push(normalized(decoded));
  }
  return readings;
}

function normalized(text: string): string {
  return text
    .normalize('NFKC')
    .replaceAll(/[\p{Cf}\p{Mn}\u115f\u3164]/gu, '')
    .toLowerCase()
    .replaceAll(/\p{L}/gu, toLatin)
    .replaceAll(/[\u2018\u2019]/g, "'")
    .replaceAll(/[\t\r\f\v ]+/g, ' ')
    .replaceAll(/ ?\n ?/g, '\n');
}

/** Replaces a letter by the Latin one that looks like it. */
export function toLatin(letter: string): string {
  return LOOK_ALIKE[letter] ?? letter;
}
