import { isSupportedCountry, type CountryCode } from 'libphonenumber-js/max';
import { invalidArgument } from '../../../errors.ts';
import type { PrivacyRule } from '../types.ts';
import { apiKey } from './api-key.ts';
import { creditCard } from './credit-card.ts';
import { dateOfBirth } from './date-of-birth.ts';
import { email } from './email.ts';
import { iban } from './iban.ts';
import { ipAddress } from './ip-address.ts';
import { jwt } from './jwt.ts';
import { passwordInUrl } from './password-in-url.ts';
import { phone } from './phone.ts';
import { privateKey } from './private-key.ts';
import { usSsn } from './us-ssn.ts';

/** The kinds that `piiRules` finds. */
export type PiiKind =
  | 'email'
  | 'phone'
  | 'credit-card'
  | 'iban'
  | 'us-ssn'
  | 'ip-address'
  | 'api-key'
  | 'jwt'
  | 'private-key'
  | 'password-in-url'
  | 'date-of-birth';

/** Options of {@link piiRules}. */
export interface PiiRulesOptions {
  /** The kinds to find. Default: all. */
  readonly kinds?: readonly PiiKind[];
  /**
   * Languages with their countries (`de-AT`), whose national telephone numbers are found in any grouping. Default: none. National numbers
   * of 25 countries are found in any case if they are grouped as usual there or a word announces them, and numbers with `+` always.
   */
  readonly locales?: readonly string[];
}

/**
 * Rules for values with a recognizable form: a check digit, a prefix, or a fixed place; not for names and addresses. Run in this process.
 *
 * @throws `INVALID_ARGUMENT` for an unknown kind or locale.
 * @example
 * import { piiRules } from 'genkitx-agents/privacy';
 * const all = piiRules();
 * const some = piiRules({ kinds: ['email', 'phone'], locales: ['de-DE', 'de-AT'] });
 */
export function piiRules(options: PiiRulesOptions = {}): PrivacyRule[] {
  // Where two kinds find the same text, the first of them names it.
  const rules: Record<PiiKind, PrivacyRule> = {
    'private-key': privateKey,
    jwt,
    'api-key': apiKey,
    'credit-card': creditCard,
    iban,
    'us-ssn': usSsn,
    'password-in-url': passwordInUrl,
    email,
    'ip-address': ipAddress,
    'date-of-birth': dateOfBirth,
    phone: phone(options.locales?.map(countryOf)),
  };
  const unknown = options.kinds?.find((kind) => !Object.hasOwn(rules, kind));
  if (unknown !== undefined) {
    throw invalidArgument(`piiRules has no kind '${unknown}'. The kinds are ${Object.keys(rules).join(', ')}.`);
  }
  return Object.values(rules).filter(({ name }) => options.kinds?.includes(name as PiiKind) ?? true);
}

function countryOf(locale: string): CountryCode {
  let country: string | undefined;
  try {
    country = new Intl.Locale(locale).maximize().region;
  } catch {
    // The error is thrown below.
  }
  if (country !== undefined && isSupportedCountry(country)) return country;
  throw invalidArgument(`piiRules can't tell the country of the locale '${locale}'. Write one like 'de-AT'.`);
}
