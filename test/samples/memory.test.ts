import { expect, test, vi } from 'vitest';
import { serveTwice } from '../../samples/memory/barista.ts';

test('the barista knows on Tuesday what was said on Monday, and the owner what was said about prices', async () => {
  const { monday, reply, placed, feedback } = await serveTwice();
  expect(reply).toBe('A flat white with oat milk, as always?');
  expect(placed.content[0]!.text).toMatch(
    /\| The customer drinks flat whites with oat milk\. \(0\.6\d?, \d{4}-\d\d-\d\d\)/,
  );
  expect(feedback).toMatchObject([
    {
      text: 'The customer finds the new prices steep.',
      data: { about: 'prices', isPraise: false },
      schemaId: 'business_feedback',
      sources: [{ id: monday, sessionId: monday, type: 'implicit', from: 2, to: 3 }],
    },
  ]);
});

test('the program prints it', async () => {
  const log = vi.spyOn(console, 'log').mockReturnValue();
  await import('../../samples/memory/main.ts');
  const lines = log.mock.calls.flat().join('\n');
  log.mockRestore();
  expect(lines).toContain('The barista says: A flat white with oat milk, as always?');
  expect(lines).toMatch(
    /For the owner: The customer finds the new prices steep\. \{"about":"prices","isPraise":false\}, 0\.6 sure/,
  );
});
