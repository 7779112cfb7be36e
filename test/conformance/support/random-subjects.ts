/** The subjects whose random cases depend on how a store cuts states into records. */
export const RANDOM: readonly string[] = ['rewrites', 'deleting and pruning', 'model'];
