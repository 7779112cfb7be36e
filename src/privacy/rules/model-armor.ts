import { GenkitError } from 'genkit';
import { invalidArgument } from '../../errors.ts';
import { inspectedMatches, type InspectedText } from './inspected.ts';
import type { PrivacyRule } from './types.ts';

/** The part of `ModelArmorClient` (`@google-cloud/modelarmor`) that is used. */
export interface ModelArmorClient {
  /** Checks one text with the filters of the template. */
  sanitizeUserPrompt(request: {
    name: string;
    userPromptData: { text: string };
  }): Promise<readonly [ModelArmorAnswer, ...unknown[]]>;
}

/** The response of Model Armor. */
export interface ModelArmorAnswer {
  /** The results of all filters. */
  sanitizationResult?: ModelArmorResults | null;
}

/** The results of the filters of a template. */
export interface ModelArmorResults {
  /** The results by the names of the filters. */
  filterResults?: Record<string, ModelArmorFilterResult> | null;
}

/** The result of a filter. Only that of the filter for sensitive data is read. */
export interface ModelArmorFilterResult {
  /** The result of the filter for sensitive data. */
  sdpFilterResult?: ModelArmorSdpResult | null;
}

/** The result of the filter for sensitive data. */
export interface ModelArmorSdpResult {
  /** Its findings, if it inspects. */
  inspectResult?: ModelArmorInspection | null;
}

/** The findings of the filter for sensitive data. */
export interface ModelArmorInspection extends InspectedText {
  /** Whether the filter ran: a name, or its number in the protocol. */
  executionState?: unknown;
}

/** Options of {@link modelArmor}. */
export interface ModelArmorOptions {
  /** The template, with a filter for sensitive data that inspects: `projects/my-project/locations/europe-west3/templates/names`. */
  readonly template: string;
}

/**
 * A rule that asks Model Armor, with one request for each text. It uses only the findings of the template's filter for sensitive data. The
 * kind of `PERSON_NAME` is `person-name`.
 *
 * @throws `INVALID_ARGUMENT` without a `template`. The rule throws the client's errors; `FAILED_PRECONDITION` if the template has no filter
 *   that inspects sensitive data, or the filter did not run; `RESOURCE_EXHAUSTED` if the service left out findings.
 * @example
 * import { ModelArmorClient } from '@google-cloud/modelarmor';
 * import { modelArmor } from 'genkitx-agents/privacy';
 * const template = 'projects/my-project/locations/europe-west3/templates/names';
 * const client = new ModelArmorClient({ apiEndpoint: 'modelarmor.europe-west3.rep.googleapis.com' });
 * const rules = [modelArmor(client, { template })];
 */
export function modelArmor(client: ModelArmorClient, options: ModelArmorOptions): PrivacyRule {
  const { template } = options;
  if (!template)
    throw invalidArgument("modelArmor needs a 'template': projects/my-project/locations/europe-west3/templates/names.");
  return {
    name: 'model-armor',
    maxLength: 256,
    find: async (text) => {
      const [{ sanitizationResult }] = await client.sanitizeUserPrompt({ name: template, userPromptData: { text } });
      const filters = Object.values(sanitizationResult?.filterResults ?? {});
      const result = filters.map((filter) => filter.sdpFilterResult?.inspectResult).find((inspected) => inspected);
      if (!result || result.executionState === 'EXECUTION_SKIPPED' || result.executionState === 2) {
        throw new GenkitError({
          status: 'FAILED_PRECONDITION',
          message: `Model Armor did not inspect a text for sensitive data. Add such a filter to the template '${template}', or send shorter texts.`,
        });
      }
      if (result.findingsTruncated) {
        throw new GenkitError({
          status: 'RESOURCE_EXHAUSTED',
          message: 'Model Armor did not return all findings. Send shorter texts.',
        });
      }
      return inspectedMatches(text, result.findings ?? []);
    },
  };
}
