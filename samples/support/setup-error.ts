/** The sample can't start with these settings. The message is one sentence for the person who started it. */
export class SetupError extends Error {}
