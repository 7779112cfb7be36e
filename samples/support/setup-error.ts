/** Something about how the sample was started is wrong. Its message is one sentence for the person who started it. */
export class SetupError extends Error {}
