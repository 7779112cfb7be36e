export {
  sessionStoreConformance,
  type ConformanceOptions,
  type OpenOptions,
  type OpenStores,
  type Runner,
} from '../test/conformance/index.ts';
