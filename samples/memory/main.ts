/** A barista with a memory: facts from one visit are used in the next. Run it with `node --import tsx samples/memory/main.ts`. */
import { serveTwice } from './barista.ts';

const { reply, placed, feedback } = await serveTwice();
console.log(`The barista says: ${reply}\n`);
console.log(`What the model was sent:\n${placed.content.map(({ text }) => text).join('\n')}\n`);
for (const { text, data, confidence, sources } of feedback) {
  console.log(
    `For the owner: ${text} ${JSON.stringify(data)}, ${confidence} sure, said in session ${sources[0]!.sessionId}`,
  );
}
