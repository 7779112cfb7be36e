/** The owner of a session. */
export interface SessionOwner {
  /** The app, by any id; its sessions share the `app:` keys. */
  readonly appName: string;
  /** The user of that app, by any id; their sessions share the `user:` keys. */
  readonly userId: string;
}
