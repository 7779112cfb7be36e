export {
  memoryStoreConformance,
  type MemoryConformanceOptions,
  type OpenMemoryOptions,
  type OpenMemoryStores,
} from '../test/conformance/memory/index.ts';
export {
  sessionStoreConformance,
  type ConformanceOptions,
  type OpenOptions,
  type OpenStores,
  type Runner,
  type StoreManifest,
} from '../test/conformance/index.ts';
export {
  scriptedModel,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
} from '../test/support/scripted-model.ts';
