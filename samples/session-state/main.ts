/** The two examples of the state guide of Google's Agent Development Kit, with this package. */
import { greet } from './greeting.ts';
import { logIn } from './login.ts';

for (const [name, { before, after }] of Object.entries({ greeting: await greet(), login: await logIn(Date.now()) })) {
  console.log(`${name}: the state was ${JSON.stringify(before)} and is ${JSON.stringify(after)}`);
}
