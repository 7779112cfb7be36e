import type { MiddlewareRef } from 'genkit';
import type { GenkitPlugin, GenkitPluginV2 } from 'genkit/plugin';
import type { SummarizeOptions } from 'genkitx-agents/context';
import type { MemoryManagerOptions } from 'genkitx-agents/memory';
import type { Config } from '../config.ts';
import { SetupError } from '../setup-error.ts';
import { findMemories } from './offline-memories.ts';
import { noteWriter } from './offline-notes.ts';
import { OFFLINE_MODEL, offlinePlugin } from './offline-model.ts';
import { findOllamaModel, withoutStreaming, type OllamaChoice } from './ollama.ts';

/** The model, and its label on the page and in the start-up text. */
export interface SupportModel {
  kind: 'gemini' | 'ollama' | 'offline';
  /** The name for the agent. */
  name: string;
  label: string;
  /** Another sentence for the person who started the sample. */
  note?: string;
  /** The Genkit plugin of the model. */
  plugins: (GenkitPlugin | GenkitPluginV2)[];
  /** Middleware for this model. */
  use: MiddlewareRef[];
  /** How old turns are summarized. Default: by the model itself. */
  summaries?: Pick<SummarizeOptions, 'model' | 'summarizer' | 'overlapTurns'>;
  /** How, and how often, facts about a customer are learned. Default: by the model itself. */
  memories?: Pick<MemoryManagerOptions, 'model' | 'extract' | 'generate'>;
}

type ModelConfig = Pick<Config, 'model' | 'geminiApiKey' | 'offlinePaceMs'>;

/** The duration of a step of a report, in words of the offline model. */
export const STEP_PACES = 50;

const GEMINI_MODEL = 'gemini-2.5-flash';
const SMALL_GEMINI_MODEL = 'gemini-2.5-flash-lite';

/**
 * Gemini if there is a key, else a local Ollama with a model that can use tools, else the offline model.
 *
 * @throws SetupError if the configured model is not available.
 */
export async function chooseModel(config: ModelConfig): Promise<SupportModel> {
  const { model: wanted, geminiApiKey, offlinePaceMs } = config;
  if (wanted === 'offline') return offlineModel(offlinePaceMs);
  if (wanted === 'gemini' || (wanted === 'auto' && geminiApiKey)) return geminiModel(geminiApiKey);

  const found = await findOllamaModel();
  if (found) return ollamaModel(found);
  if (wanted === 'auto') return offlineModel(offlinePaceMs);
  throw new SetupError('MODEL is ollama, but no Ollama with a model that can use tools answers on 127.0.0.1:11434.');
}

/** @throws SetupError if there is no key. */
export async function geminiModel(apiKey: string | undefined): Promise<SupportModel> {
  if (!apiKey) throw new SetupError('MODEL is gemini, but GEMINI_API_KEY is not set.');
  const { googleAI } = await import('@genkit-ai/google-genai');
  return {
    kind: 'gemini',
    name: `googleai/${GEMINI_MODEL}`,
    label: GEMINI_MODEL,
    plugins: [googleAI({ apiKey })],
    use: [],
    summaries: { model: `googleai/${SMALL_GEMINI_MODEL}` },
    memories: { model: `googleai/${SMALL_GEMINI_MODEL}` },
  };
}

/** A model of the Ollama at `serverAddress`. */
export async function ollamaModel({ name, serverAddress }: OllamaChoice): Promise<SupportModel> {
  const { ollama } = await import('genkitx-ollama');
  return {
    kind: 'ollama',
    name: `ollama/${name}`,
    label: `${name} (Ollama)`,
    plugins: [ollama({ serverAddress, models: [{ name, type: 'chat', supports: { tools: true } }] })],
    use: [withoutStreaming()],
  };
}

/** @param paceMs The pause between two words, in ms. */
export function offlineModel(paceMs: number): SupportModel {
  return {
    kind: 'offline',
    name: OFFLINE_MODEL,
    label: 'offline model',
    note: 'It is a set of rules, not a language model. Set GEMINI_API_KEY, or start Ollama, for a real one.',
    plugins: [offlinePlugin(paceMs)],
    use: [],
    // Each note describes one turn, so the rules need no overlap.
    summaries: { summarizer: noteWriter(paceMs), overlapTurns: 0 },
    // Rules cost nothing.
    memories: { extract: findMemories, generate: { everyTurns: 1 } },
  };
}
