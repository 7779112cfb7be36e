import { GenkitError } from 'genkit';
import { invalidArgument } from '../../errors.ts';
import { inspectedMatches, type InspectedText } from './inspected.ts';
import type { PrivacyRule, RuleMatch } from './types.ts';

/** The part of `DlpServiceClient` (`@google-cloud/dlp`) that is used. */
export interface DlpClient {
  /** Inspects one text. */
  inspectContent(request: {
    parent: string;
    inspectTemplateName?: string;
    inspectConfig?: { infoTypes?: { name: string }[]; minLikelihood?: DlpLikelihood };
    item: { value: string };
  }): Promise<readonly [DlpAnswer, ...unknown[]]>;
}

/** The response of Sensitive Data Protection. */
export interface DlpAnswer {
  /** The findings in the text. */
  result?: InspectedText | null;
}

/** The minimum certainty of a finding. */
export type DlpLikelihood = 'VERY_UNLIKELY' | 'UNLIKELY' | 'POSSIBLE' | 'LIKELY' | 'VERY_LIKELY';

/** Options of {@link cloudDlp}. */
export interface CloudDlpOptions {
  /** The project that is billed, and the location: `projects/my-project/locations/europe-west3`. */
  readonly parent: string;
  /** The names of the types to find. Default: those of the template, or `PERSON_NAME` and `STREET_ADDRESS`. */
  readonly infoTypes?: readonly string[];
  /** An inspection template: `projects/my-project/locations/europe-west3/inspectTemplates/names`. Default: none. */
  readonly inspectTemplate?: string;
  /** Default: that of the template, or `POSSIBLE`. */
  readonly minLikelihood?: DlpLikelihood;
}

/** A request holds at most 0.5 MB. A code unit takes at most 3 bytes, and JSON may double that. */
const MAX_CHARS = 80_000;
/** Pieces overlap by this much: a value across the end of one piece is whole in the next. */
const MAX_LENGTH = 256;

/**
 * A rule that asks Sensitive Data Protection (Cloud DLP), with one request for each text. It finds names and addresses, which `piiRules`
 * can't. The kind of `PERSON_NAME` is `person-name`.
 *
 * @throws `INVALID_ARGUMENT` without a `parent`. The rule throws the client's errors, and `RESOURCE_EXHAUSTED` if findings were left out.
 * @example
 * import { DlpServiceClient } from '@google-cloud/dlp';
 * import { cloudDlp, piiRules } from 'genkitx-agents/privacy';
 * const parent = 'projects/my-project/locations/europe-west3';
 * const rules = [...piiRules(), cloudDlp(new DlpServiceClient(), { parent })];
 */
export function cloudDlp(client: DlpClient, options: CloudDlpOptions): PrivacyRule {
  const { parent, inspectTemplate, minLikelihood } = options;
  if (!parent) throw invalidArgument("cloudDlp needs a 'parent': projects/my-project/locations/europe-west3.");
  const infoTypes =
    options.infoTypes ?? (inspectTemplate === undefined ? ['PERSON_NAME', 'STREET_ADDRESS'] : undefined);

  async function inspect(text: string): Promise<RuleMatch[]> {
    const [{ result }] = await client.inspectContent({
      parent,
      item: { value: text },
      ...(inspectTemplate !== undefined && { inspectTemplateName: inspectTemplate }),
      inspectConfig: {
        ...(infoTypes && { infoTypes: infoTypes.map((name) => ({ name })) }),
        ...(minLikelihood && { minLikelihood }),
      },
    });
    if (result?.findingsTruncated) {
      throw new GenkitError({
        status: 'RESOURCE_EXHAUSTED',
        message: 'Cloud DLP did not return all findings. Inspect fewer types, or shorter texts.',
      });
    }
    return inspectedMatches(text, result?.findings ?? []);
  }

  return {
    name: 'cloud-dlp',
    maxLength: MAX_LENGTH,
    find: async (text, { signal }) => {
      const found: RuleMatch[] = [];
      for (let from = 0; from < text.length; from += MAX_CHARS - MAX_LENGTH) {
        signal?.throwIfAborted();
        const matches = await inspect(text.slice(from, from + MAX_CHARS));
        found.push(...matches.map((match) => ({ ...match, start: match.start + from, end: match.end + from })));
        if (from + MAX_CHARS >= text.length) break;
      }
      return found;
    },
  };
}
