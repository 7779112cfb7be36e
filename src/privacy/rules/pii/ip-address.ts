import validator from 'validator';
import { patternRule, textBefore, type Span } from './patterns/pattern-rule.ts';

const V4 = /(?<![\w.-]|[\w)]\/)\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\w)/g;
const V6 = /(?<![\w:.])(?:[\da-f]{0,4}:){2,8}(?:[\da-f]{1,4}|\d{1,3}(?:\.\d{1,3}){3})?(?:%[\w.-]{1,16})?(?![\w:])/gi;

/** Four numbers after these are a version or a section. */
const NUMBERED =
  /(?:\bv|\bver|\b(?:version|release|build|firmware|driver|section|chapter|clause|article|paragraph|step|rev|revision|update|patch|sdk|Kapitel|Abschnitt|Fassung|capítulo|sección|versión|chapitre|versione|versie|versão|wersja)s?|§|v\.)[\s.:=#-]{0,3}$/i;

/** Addresses of IP version 4 and 6. */
export const ipAddress = patternRule('ip-address', 56, function* (text, label): Generator<Span> {
  // All addresses found below have a digit: `isOtherNotation` excludes those without.
  if (!/\d/.test(text)) return;
  for (const { 0: value, index: start } of text.matchAll(V4)) {
    if (!validator.isIP(value, 4) || NUMBERED.test(textBefore(text, start, label, 24))) continue;
    yield { start, end: start + value.length };
  }
  for (const { 0: value, index: start } of text.matchAll(V6)) {
    if (validator.isIP(value, 6) && !isOtherNotation(value))
      yield { start, end: start + value.length, canonical: shortest(value) };
  }
});

/** An address of version 6 in its canonical form, without unneeded zeros. */
function shortest(value: string): string {
  const [address, zone = ''] = value.toLowerCase().split('%');
  const url = `http://[${address}]`;
  return URL.canParse(url) ? `${new URL(url).hostname}${zone}` : value.toLowerCase();
}

/** Whether it is `::`, `ab::cd` of a programming language, or a hardware address of eight bytes. */
function isOtherNotation(value: string): boolean {
  const groups = value.split(':').filter((group) => group !== '');
  const isHardware = groups.length === 8 && groups.every((group) => group.length === 2);
  return isHardware || !/\d/.test(value) || (groups.length < 3 && groups[0]?.length !== 4 && !value.includes('.'));
}
