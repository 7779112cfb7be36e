import { logger } from 'genkit/logging';
import { logWarning } from '../../errors.ts';
import type { Json } from '../../json/value.ts';
import { estimateTokens, fitting } from '../../session/log/estimate-tokens.ts';
import type { FoundBlocks, MemoryBlock, MemoryItem } from '../../session/turn-memory.ts';
import type { OmissionReason } from '../../snapshot/context-report.ts';
import type { Memory } from '../../store/memory/contract.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import type { MemoryManager } from '../manager.ts';
import { targetOf, tenantKeyOf, type MemoryScope } from '../scopes.ts';
import { Deadline, LATE, SYSTEM_CLOCK } from '../search/deadline.ts';
import { bestOf, memoryLine, noteUses, type FoundInScope } from './found-memories.ts';
import type { AttachSettings } from './attach-settings.ts';

/** The most profiles that this process caches. */
const MOST_PROFILES = 1_000;

/** An item with its estimated tokens. */
interface CountedItem extends MemoryItem {
  readonly tokens: number;
}

/** A cached profile. */
interface KnownProfile {
  /** The scope's revision when the profile was read. */
  readonly revision: number;
  /** `undefined`: there is no profile. */
  readonly item: CountedItem | undefined;
}

interface ScopeFinding extends FoundInScope {
  readonly profile: CountedItem | undefined;
  readonly reasons: readonly OmissionReason[];
}

interface Searched extends Pick<ScopeFinding, 'memories' | 'reasons'> {
  /** The scope's revision that the search read, if it is known. */
  readonly revision: number | undefined;
}

const NOTHING_SEARCHED: Searched = { memories: [], revision: undefined, reasons: [] };

/** Finds the memories and profiles for a turn. If the store hangs or fails, the turn continues after the deadline with what was found. */
export class Retrieval {
  readonly #manager: MemoryManager;
  readonly #settings: AttachSettings;
  readonly #profiles = new LruCache<KnownProfile>(MOST_PROFILES);

  constructor(manager: MemoryManager, settings: AttachSettings) {
    this.#manager = manager;
    this.#settings = settings;
  }

  /** Never rejects. */
  async find(scopes: readonly MemoryScope[], text: string, abortSignal: AbortSignal | undefined): Promise<FoundBlocks> {
    const findings = await Promise.all(scopes.map((scope) => this.#findIn(scope, text, abortSignal)));
    const { k, profile, memories } = this.#settings;
    const reasons = [...new Set(findings.flatMap((finding) => finding.reasons))];
    const best = bestOf(findings, k);
    const blocks: MemoryBlock[] = [];
    if (profile !== 'none') {
      const profiles = findings.flatMap((finding) => finding.profile ?? []);
      blocks.push(this.#block('profile', profile, profiles, memories === 'tool' ? reasons : []));
    }
    if (memories !== 'tool') blocks.push(this.#block('memory', memories, best.map(itemOf), reasons));
    const items = new Set(blocks.flatMap((block) => block.items));
    const placed = best.filter((memory) => items.has(itemOf(memory)));
    return {
      blocks: blocks.filter((block) => block.items.length > 0 || block.reasons.length > 0),
      noteUse: () => noteUses(this.#manager, findings, placed),
    };
  }

  async #findIn(scope: MemoryScope, text: string, abortSignal: AbortSignal | undefined): Promise<ScopeFinding> {
    const { deadlineMs, profile } = this.#settings;
    const start = performance.now();
    const { memories, revision, reasons } = await this.#search(scope, text, abortSignal);
    if (profile === 'none') return { scope, memories, profile: undefined, reasons };
    const left = Math.max(0, deadlineMs - (performance.now() - start));
    const read = await this.#profileOf(scope, revision, left, abortSignal);
    return { scope, memories, profile: read.profile, reasons: [...reasons, ...read.reasons] };
  }

  /** Never rejects, so that the profile is placed even if the search failed. */
  async #search(scope: MemoryScope, text: string, abortSignal: AbortSignal | undefined): Promise<Searched> {
    const { memories: place, k, minScore, deadlineMs } = this.#settings;
    if (place === 'tool' || text.trim() === '') return NOTHING_SEARCHED;
    try {
      const { memories, report } = await this.#manager.search({
        scope,
        query: text,
        k,
        deadlineMs,
        ...(minScore !== undefined && { minScore }),
        ...(abortSignal && { abortSignal }),
      });
      const reasons: OmissionReason[] = [];
      if (report.deadlinePassed) reasons.push('deadline');
      if (report.errors.length > 0) {
        reasons.push('failed');
        logger.warn(
          `The search of memories failed. The turn continues with the memories found so far. ${report.errors.join(' ')}`,
        );
      }
      return { memories, revision: report.revision, reasons };
    } catch (error) {
      if (!abortSignal?.aborted) warn(error);
      return { ...NOTHING_SEARCHED, reasons: ['failed'] };
    }
  }

  /**
   * Returns the profile. Reads it only if the scope has changed since the last read. Never rejects.
   *
   * @param searched The revision that the search read.
   */
  async #profileOf(
    scope: MemoryScope,
    searched: number | undefined,
    withinMs: number,
    abortSignal: AbortSignal | undefined,
  ): Promise<Pick<ScopeFinding, 'profile' | 'reasons'>> {
    const { store } = this.#manager;
    let known: KnownProfile | undefined;
    try {
      const key = tenantKeyOf(store, scope);
      known = this.#profiles.get(key);
      if (known && known.revision === searched) return { profile: known.item, reasons: [] };
      const reading = async (): Promise<KnownProfile> => {
        const { id, options } = targetOf(scope);
        const revision = searched ?? (await store.revision(id, options));
        if (known?.revision === revision) return known;
        const read = { revision, item: profileItem(await this.#manager.profile({ scope })) };
        this.#profiles.set(key, read, 1);
        return read;
      };
      const read = withinMs === 0 ? LATE : await beforeDeadline(reading(), withinMs, abortSignal);
      return read === LATE ? { profile: known?.item, reasons: ['deadline'] } : { profile: read.item, reasons: [] };
    } catch (error) {
      warn(error);
      return { profile: known?.item, reasons: ['failed'] };
    }
  }

  /** Makes a block of the items that fit. */
  #block(
    title: MemoryBlock['title'],
    place: MemoryBlock['place'],
    items: readonly CountedItem[],
    reasons: readonly OmissionReason[],
  ): MemoryBlock {
    const { maxTokens } = this.#settings;
    const kept = fitting(items, ({ tokens }) => tokens, maxTokens);
    const omitted = items.length - kept.length;
    const all: OmissionReason[] = omitted > 0 ? [...reasons, 'section'] : [...reasons];
    return { title, place, items: kept, maxTokens, omitted, reasons: all };
  }
}

async function beforeDeadline<T>(work: Promise<T>, ms: number, abortSignal: AbortSignal | undefined) {
  const deadline = new Deadline(SYSTEM_CLOCK, ms, abortSignal);
  return deadline.wait(work).finally(deadline.end);
}

function warn(error: unknown): void {
  logWarning('The memories of a turn could not be read. The turn continues without them.', error);
}

function profileItem(profile: Json | undefined): CountedItem | undefined {
  const text = JSON.stringify(profile, null, 1);
  if (profile === undefined || text === '{}') return undefined;
  return { text, tokens: estimateTokens(text) };
}

/** Caches the items of memories, because counting their tokens takes as long as the search for them. */
const items = new WeakMap<Memory, CountedItem>();

function itemOf(memory: Memory): CountedItem {
  const known = items.get(memory);
  if (known) return known;
  const text = memoryLine(memory);
  const item = { text, id: memory.id, revision: memory.revision, tokens: estimateTokens(text) };
  items.set(memory, item);
  return item;
}
