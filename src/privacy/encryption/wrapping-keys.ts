/** The keys that data keys are encrypted with. They are kept apart from the data, and change rarely. */
export interface WrappingKeys {
  /** The id of the key that encrypts new data keys; at most 255 bytes. It is stored in clear. */
  readonly currentId: string;
  /**
   * Encrypts a data key with the current key.
   *
   * @param context Names the data that the key is for. `unwrap` needs the same context.
   */
  wrap(dataKey: Uint8Array, context: Uint8Array): Promise<Uint8Array>;
  /**
   * Decrypts a data key.
   *
   * @returns `undefined` when there is no key of this id.
   * @throws GenkitError `DATA_LOSS` when `wrapped` is not a result of `wrap`. An error that is not a `GenkitError` means that the key can't be
   *   reached now: the store's call fails with `UNAVAILABLE`.
   */
  unwrap(wrapped: Uint8Array, keyId: string, context: Uint8Array): Promise<Uint8Array | undefined>;
}
