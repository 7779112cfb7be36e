import { invalidArgument } from '../../errors.ts';
import {
  checkOptions,
  isAny,
  isBoolean,
  isFunction,
  isListOf,
  isOneOf,
  isString,
  isTimerMs,
  type OptionCheck,
} from '../../store/check-options.ts';
import type { PrivacyRule } from '../rules/types.ts';
import { namingErrors } from './run-rules.ts';

/** Options of `redacting` and `redactingStreams`. */
export interface RedactingOptions {
  /** The rules that find the values to replace, for example `piiRules()`. */
  rules: readonly PrivacyRule[];
  /**
   * At least 32 bytes, the same in all processes. It numbers the placeholders and encrypts sealed values. A list is for rotation: the first
   * secret is used for new data; all of them open sealed values and find the numbers of a session. Without the secret under which a value was
   * numbered, and in records of users and apps with a new first secret, the value gets another number.
   */
  secret: string | Uint8Array | readonly (string | Uint8Array)[];
  /** JSON Pointers of parts of the state that are stored unchanged: `/custom/order/id`. `*` is any one name or index. Default: none. */
  except?: readonly string[];
  /** Whether the model gets placeholders even in the running turn. Default: `false`: it gets the originals, in later turns placeholders. */
  beforeModel?: boolean;
  /**
   * If a rule throws or takes too long: `refuse` fails the save with `UNAVAILABLE`, `write` saves the text unchanged. Default: `refuse`.
   */
  onFailure?: 'refuse' | 'write';
  /** How long the rules may take for one save, in ms. Default: 10,000. */
  timeoutMs?: number;
}

/** Checked {@link RedactingOptions}. */
export interface RedactingSettings {
  readonly rules: readonly PrivacyRule[];
  readonly secrets: readonly Uint8Array[];
  readonly except: readonly string[];
  readonly beforeModel: boolean;
  readonly onFailure: 'refuse' | 'write';
  readonly timeoutMs: number;
}

const MIN_SECRET_BYTES = 32;

/** @throws `INVALID_ARGUMENT` */
export function checkRedacting(owner: string, options: RedactingOptions): RedactingSettings {
  checkOptions(owner, options, {
    rules: isListOf(isRule, 'rules, for example piiRules()'),
    secret: isAny,
    except: isListOf(isString, 'JSON Pointers'),
    beforeModel: isBoolean,
    onFailure: isOneOf('refuse', 'write'),
    timeoutMs: isTimerMs(1),
  });
  if (!options?.rules) throw invalidArgument(`${owner} needs rules, for example rules: piiRules().`);
  return {
    rules: options.rules.map(namingErrors),
    secrets: readSecrets(owner, options.secret),
    except: options.except ?? [],
    beforeModel: options.beforeModel ?? false,
    onFailure: options.onFailure ?? 'refuse',
    timeoutMs: options.timeoutMs ?? 10_000,
  };
}

function readSecrets(owner: string, secret: RedactingOptions['secret']): Uint8Array[] {
  const given = Array.isArray(secret) && secret.length > 0 ? (secret as readonly unknown[]) : [secret];
  return given.map((each) => {
    const bytes = typeof each === 'string' ? new TextEncoder().encode(each) : each;
    if (bytes instanceof Uint8Array && bytes.byteLength >= MIN_SECRET_BYTES) return bytes;
    throw invalidArgument(
      `${owner} needs a secret of at least ${MIN_SECRET_BYTES} bytes, or a list of them: secret: process.env['PRIVACY_SECRET'].`,
    );
  });
}

const isRule: OptionCheck = (value) => isFunction((value as Partial<PrivacyRule> | null)?.find);
