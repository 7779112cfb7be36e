/** The adapters with Google's own clients, which talk REST to a server here. The server imitates the services. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DlpServiceClient } from '@google-cloud/dlp';
import { ModelArmorClient } from '@google-cloud/modelarmor';
import { cloudDlp, modelArmor, redactText } from 'genkitx-agents/privacy';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

const parent = 'projects/p/locations/europe-west3';
const template = `${parent}/templates/names`;

interface Received {
  readonly path: string;
  readonly body: Record<string, unknown>;
}

let server: Server;
let dlp: DlpServiceClient;
let armor: ModelArmorClient;
let received: Received[] = [];
/** Members that the server adds to its next answers, or the status of its error. */
let fault: { result?: object; status?: number } = {};

/** Finds each "Zoë Müller" and counts in code points, 64-bit numbers as text, as JSON of protocol buffers has them. */
function findingsIn(text: string): object[] {
  return [...text.matchAll(/Zoë Müller/g)].map(({ index, 0: name }) => {
    const start = Array.from(text.slice(0, index)).length;
    return { start: String(start), end: String(start + Array.from(name).length) };
  });
}

function answerTo({ path, body }: Received): object {
  if (path === `/v2/${parent}/content:inspect`) {
    const { value } = body['item'] as { value: string };
    const findings = findingsIn(value).map((codepointRange) => ({
      infoType: { name: 'PERSON_NAME' },
      likelihood: 'LIKELY',
      location: { codepointRange },
    }));
    return { result: { findings, ...fault.result } };
  }
  if (path === `/v1/${template}:sanitizeUserPrompt`) {
    const { text } = body['userPromptData'] as { text: string };
    const findings = findingsIn(text).map((codepointRange) => ({
      infoType: 'PERSON_NAME',
      likelihood: 'LIKELY',
      location: { codepointRange },
    }));
    const inspectResult = { executionState: 'EXECUTION_SUCCESS', matchState: 'MATCH_FOUND', findings, ...fault.result };
    const filterResults = { csam: { csamFilterFilterResult: {} }, sdp: { sdpFilterResult: { inspectResult } } };
    return { sanitizationResult: { filterMatchState: 'MATCH_FOUND', filterResults } };
  }
  return {};
}

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const entry = { path: request.url!.split('?')[0]!, body: JSON.parse(text) as Received['body'] };
      received.push(entry);
      const { status = 200 } = fault;
      const error = { code: status, message: 'no', status: 'PERMISSION_DENIED' };
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(status === 200 ? answerTo(entry) : { error }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // In place of Google's sign-in; the rest of the client is the real one.
  const auth = {
    fetch,
    getClient: async () => ({ universeDomain: 'googleapis.com' }),
    getUniverseDomain: async () => 'googleapis.com',
  };
  const options = {
    fallback: true,
    protocol: 'http',
    apiEndpoint: '127.0.0.1',
    port,
    auth: auth as never,
    projectId: 'p',
  };
  dlp = new DlpServiceClient(options);
  armor = new ModelArmorClient(options);
});
afterEach(() => {
  received = [];
  fault = {};
});
afterAll(async () => {
  await Promise.all([dlp.close(), armor.close()]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const TEXT = '👩‍🚀 Zoë Müller met 𝒜nna and Zoë Müller.';
const REDACTED = '👩‍🚀 [PERSON_NAME_1] met 𝒜nna and [PERSON_NAME_1].';

describe('cloudDlp', () => {
  it('replaces the findings of the service, and requests names and addresses', async () => {
    const { value, findings } = await redactText(TEXT, [cloudDlp(dlp, { parent })]);
    expect(value).toBe(REDACTED);
    expect(findings.map(({ kind, rule }) => `${kind} by ${rule}`)).toEqual(Array(2).fill('person-name by cloud-dlp'));
    expect(received).toEqual([
      {
        path: `/v2/${parent}/content:inspect`,
        body: {
          item: { value: TEXT },
          inspectConfig: { infoTypes: [{ name: 'PERSON_NAME' }, { name: 'STREET_ADDRESS' }] },
        },
      },
    ]);
  });

  it('uses a template', async () => {
    const inspectTemplate = `${parent}/inspectTemplates/names`;
    await redactText(TEXT, [cloudDlp(dlp, { parent, inspectTemplate, minLikelihood: 'LIKELY' })]);
    expect(received[0]!.body).toMatchObject({ inspectTemplateName: inspectTemplate });
    expect(received[0]!.body['inspectConfig']).toEqual({ minLikelihood: expect.anything() });
  });

  it('sends a long text in pieces, and finds a name across their ends', async () => {
    const text = `${'x'.repeat(79_995)} Zoë Müller ${'é'.repeat(90_000)} Zoë Müller`;
    const { value } = await redactText(text, [cloudDlp(dlp, { parent })]);
    expect(value).toBe(text.replaceAll('Zoë Müller', '[PERSON_NAME_1]'));
    expect(received.length).toBe(3);
  });

  it('fails when the service fails, or leaves out findings', async () => {
    fault = { result: { findingsTruncated: true } };
    await expect(redactText(TEXT, [cloudDlp(dlp, { parent })])).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    fault = { status: 403 };
    await expect(redactText(TEXT, [cloudDlp(dlp, { parent })])).rejects.toThrow('no');
  });
});

describe('modelArmor', () => {
  it('replaces the findings of the filter for sensitive data', async () => {
    const { value, findings } = await redactText(TEXT, [modelArmor(armor, { template })]);
    expect(value).toBe(REDACTED);
    expect(findings[0]).toMatchObject({ kind: 'person-name', rule: 'model-armor' });
    expect(received[0]).toMatchObject({
      path: `/v1/${template}:sanitizeUserPrompt`,
      body: { userPromptData: { text: TEXT } },
    });
  });

  it('fails when the filter did not run, when findings were left out, and when the service fails', async () => {
    const rules = [modelArmor(armor, { template })];
    fault = { result: { executionState: 'EXECUTION_SKIPPED' } };
    await expect(redactText(TEXT, rules)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    fault = { result: { findingsTruncated: true } };
    await expect(redactText(TEXT, rules)).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    fault = { status: 403 };
    await expect(redactText(TEXT, rules)).rejects.toThrow('no');
  });
});
