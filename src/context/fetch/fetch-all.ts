import { runInNewSpan, setCustomMetadataAttributes } from 'genkit/tracing';
import { logWarning } from '../../errors.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import type { Fetched } from '../prepare/assemble.ts';
import { Omissions } from '../prepare/sections.ts';
import type { ContextQuery, ContextSource, OmissionReason } from '../types.ts';

export type Sources = Partial<Record<Fetched['section'], ContextSource>>;

/** The most characters of a token, in any language. A text that is too long by this measure need not be counted. */
const MOST_CHARACTERS_PER_TOKEN = 16;

const TOO_LATE = new Error('The deadline of a source has passed.');

/** Asks all sources at the same time, each until its deadline. A source that fails or is late gives no items. Never throws. */
export async function fetchAll(
  sources: Sources,
  query: Omit<ContextQuery, 'abortSignal'>,
  signal?: AbortSignal,
): Promise<Fetched[]> {
  const named = Object.entries(sources) as [Fetched['section'], ContextSource | undefined][];
  const asked = named.filter((pair): pair is [Fetched['section'], ContextSource] => pair[1] !== undefined);
  if (asked.length === 0 || query.text === '') return [];
  return runInNewSpan({ metadata: { name: 'context-fetch' } }, async () => {
    const fetched = await Promise.all(asked.map(([section, source]) => fetchOne(section, source, query, signal)));
    setCustomMetadataAttributes(
      Object.fromEntries(fetched.map(({ section, items }) => [`context:${section}`, `${items.length}`])),
    );
    return fetched;
  });
}

async function fetchOne(
  section: Fetched['section'],
  source: ContextSource,
  query: Omit<ContextQuery, 'abortSignal'>,
  signal: AbortSignal | undefined,
): Promise<Fetched> {
  const { maxTokens, deadlineMs, isFixed = false } = source;
  const without = (reason: OmissionReason): Fetched => ({
    section,
    maxTokens,
    items: [],
    omissions: new Omissions(0, [reason]),
  });
  try {
    const ask = async (abortSignal: AbortSignal) => source.fetch({ ...query, abortSignal });
    const answer = await withinTime(() => TOO_LATE, deadlineMs, signal, ask);
    if (!answer.every(({ text }) => typeof text === 'string')) return without('failed');
    const most = (maxTokens ?? Infinity) * MOST_CHARACTERS_PER_TOKEN;
    const found = answer.filter(({ text }) => text !== '');
    const items = found.filter(({ text }) => text.length <= most);
    const omissions = new Omissions();
    omissions.add(found.length - items.length, 'section');
    return { section, maxTokens, place: isFixed ? 'before-history' : 'before-prompt', items, omissions };
  } catch (error) {
    if (error === TOO_LATE || signal?.aborted) return without('deadline');
    logWarning(`The source of the section '${section}' failed; the turn continues without this section.`, error);
    return without('failed');
  }
}
