import { Firestore, type Settings } from '@google-cloud/firestore';
import { isWhole, type OptionCheck } from '../../src/store/check-options.ts';

/** Firestore's limit for a document is 1 MiB, names and other fields included. */
const LARGEST_SHARD = 1_000_000;
const SMALLEST_SHARD = 1024;

/**
 * The client must come from the same copy of its package as this store: two copies don't accept each other's values. No public member
 * has its settings.
 */
export const isClient: OptionCheck = (value) => {
  if (!(value instanceof Firestore)) {
    return "a Firestore of the copy of @google-cloud/firestore that this package imports; 'npm ls @google-cloud/firestore' must show one version";
  }
  const { _settings: settings } = value as unknown as { _settings?: Settings };
  return settings?.useBigInt
    ? 'a Firestore without useBigInt; make a client without this setting for the store'
    : undefined;
};

/** Firestore can't store times after the year 9999. */
const LONGEST_LIFE_MS = 100_000_000_000_000;

export const isLifeMs: OptionCheck = isWhole(1, LONGEST_LIFE_MS);

/** The path of a collection: an odd number of names, separated by slashes. */
export const isCollectionName: OptionCheck = (value) => {
  const names = typeof value === 'string' ? value.split('/') : [];
  const isPath = names.length % 2 === 1 && names.every((name) => !/^(?:\.\.?|__.*__|\s*)$/.test(name));
  return isPath ? undefined : 'the path of a collection';
};

export const isShardSize: OptionCheck = isWhole(SMALLEST_SHARD, LARGEST_SHARD);
