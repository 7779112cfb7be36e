/** The cost of assembling the window of a long session after a new turn: the time, and the number of examined messages. */
import { contextWindow } from 'genkitx-agents/context';
import { meter } from '../../src/session/log/message-log.ts';
import { single, spread } from '../measure.ts';
import { Contender } from '../race.ts';
import type { Report } from '../report.ts';
import type { AssemblyRequest, AssemblySpec } from './assembly-contender.ts';
import { longTalker, WINDOWS, type WindowName } from './long-talker.ts';

const SCRIPT = new URL('./assembly-contender.ts', import.meta.url);
const NAMES = Object.keys(WINDOWS) as WindowName[];

/** Turns that are played before the first measurement, so that all code is compiled. */
const WARM_UP = 30;
const MEASURED = 50;
const MOST_OF_TURN = 1 / 10;
const MOST_LOOKS = 3;

/** The time of the windows, compared with the turn of an agent without a window. */
export async function benchAssembly(report: Report, turns: number): Promise<void> {
  const session = { turns, added: WARM_UP + MEASURED };
  const specs: AssemblySpec[] = [
    { name: 'no window', ...session },
    ...NAMES.map((window) => ({ name: window, window, ...session })),
  ];
  const contenders: Contender<AssemblyRequest>[] = [];
  try {
    for (const spec of specs) contenders.push(await Contender.start<AssemblyRequest>(spec, SCRIPT));
    const times: number[][] = specs.map(() => []);
    const assembled: number[][] = specs.map(() => []);
    report.start('windows of a long session', session.added);
    for (let turn = 0; turn < session.added; turn++) {
      const order = [...contenders.keys()];
      for (const i of turn % 2 === 0 ? order : order.toReversed()) {
        const ms = await contenders[i]!.ask('turn');
        const of = await contenders[i]!.ask('assembled');
        if (turn < WARM_UP) continue;
        times[i]!.push(ms);
        assembled[i]!.push(of);
      }
      report.progress(1);
    }
    const without = spread(times[0]!);
    for (const [i, { name }] of specs.entries()) {
      if (i === 0) continue;
      const beside = { unit: 'ms', theirs: without, peer: 'the turn without a window' } as const;
      report.add(
        {
          name: `${name}, window assembled after turn ${turns}`,
          ours: spread(assembled[i]!),
          ...beside,
          goal: { atMostOfTheirs: MOST_OF_TURN },
        },
        { name: `${name}, agent turn after turn ${turns}`, ours: spread(times[i]!), ...beside },
      );
    }
  } finally {
    await Promise.all(contenders.map((contender) => contender.stop()));
  }
}

/** How many messages the windows count or hash for each message that they send. */
export async function benchLooks(report: Report, turns: number): Promise<void> {
  for (const name of NAMES) {
    const window = contextWindow({ maxTokens: 8_000, history: WINDOWS[name]() });
    const looks: number[] = [];
    const shares: number[] = [];
    let sent = 0;
    const talker = await longTalker({ turns, added: WARM_UP }, window, ({ messages }) => (sent = messages.length));
    report.start('messages looked at', WARM_UP);
    for (let turn = 0; turn < WARM_UP; turn++) {
      await window.settled();
      const before = meter.messages;
      await talker.send();
      const looked = meter.messages - before;
      report.progress(1);
      // The first turns also examine the initial session.
      if (turn < 2) continue;
      looks.push(looked);
      shares.push(looked / sent);
    }
    await window.settled();
    report.add(
      { name: `${name}, messages looked at in a turn after turn ${turns}, mean`, unit: 'messages', ours: mean(looks) },
      {
        name: `${name}, messages looked at for one that is sent, worst turn`,
        unit: 'messages',
        ours: single(Math.max(...shares)),
        goal: { atMost: MOST_LOOKS },
      },
    );
  }
}

function mean(values: readonly number[]) {
  return { ...spread(values), median: values.reduce((a, b) => a + b, 0) / values.length };
}
