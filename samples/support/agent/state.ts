import { z } from 'genkit';

/**
 * What the agent has learned in a conversation so far. It is part of every snapshot, so going back to an earlier message also goes back to
 * what was known then.
 */
export const SupportStateSchema = z.object({
  /** Whom we are talking to, once an order or a name told us. */
  customer: z.object({ name: z.string(), email: z.string() }).optional(),
  /** The order that was looked at last. */
  orderId: z.string().optional(),
  topic: z.enum(['order', 'orders', 'refund']).optional(),
  /** Refunds made in this conversation. */
  refunds: z.array(z.object({ refundId: z.string(), orderId: z.string(), amount: z.number() })),
  /** Messages the customer has sent. */
  turns: z.number().int(),
});

/** What of the customer's wishes holds in all conversations. It lives with the user (`user:style`): going back in one does not undo it. */
export const PreferencesSchema = z.object({ style: z.enum(['brief', 'full']) });

export type Preferences = z.infer<typeof PreferencesSchema>;

export type SupportState = z.infer<typeof SupportStateSchema>;

/** What a conversation starts with. */
export const NOTHING_KNOWN: SupportState = { refunds: [], turns: 0 };
