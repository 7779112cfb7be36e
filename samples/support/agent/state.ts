import { z } from 'genkit';

/**
 * The agent's knowledge about a conversation. It is part of every snapshot, so going back to an earlier message also restores the knowledge
 * of that time.
 */
export const SupportStateSchema = z.object({
  /** The customer, as soon as an order or a name identifies them. */
  customer: z.object({ name: z.string(), email: z.string() }).optional(),
  /** The order of the last lookup. */
  orderId: z.string().optional(),
  topic: z.enum(['order', 'orders', 'refund']).optional(),
  /** Refunds made in this conversation. */
  refunds: z.array(z.object({ refundId: z.string(), orderId: z.string(), amount: z.number() })),
  /** Messages the customer has sent. */
  turns: z.number().int(),
});

/** The customer's preferences for all conversations. They belong to the user (`user:style`): going back in a conversation keeps them. */
export const PreferencesSchema = z.object({ style: z.enum(['brief', 'full']) });

export type Preferences = z.infer<typeof PreferencesSchema>;

export type SupportState = z.infer<typeof SupportStateSchema>;

/** The state at the beginning of a conversation. */
export const NOTHING_KNOWN: SupportState = { refunds: [], turns: 0 };
