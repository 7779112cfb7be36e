import { chatMessagesOf } from 'genkitx-agents/react';
import { expect, it } from 'vitest';

it('a session that does not exist yet has no messages', () => {
  expect(chatMessagesOf(undefined)).toEqual([]);
});
