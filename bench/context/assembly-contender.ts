/** An agent in a long session, with a window or without, in a process of its own. Started by `assembly.ts` only. */
import { contextWindow, type ContextWindow, type TurnWindow } from 'genkitx-agents/context';
import { answerRequests } from '../answer-requests.ts';
import { timed } from '../measure.ts';
import { longTalker, WINDOWS, type LongSession, type WindowName } from './long-talker.ts';

export interface AssemblySpec extends LongSession {
  readonly name: string;
  /** Default: no window. */
  readonly window?: WindowName;
}

/** What the parent may ask for. */
export type AssemblyRequest =
  /** Adds a turn; answers its ms. */
  | 'turn'
  /** Of the last turn, the ms in which its requests were assembled, each from the call of the window to that of the model. */
  | 'assembled';

/** The window, and a clock around what it does before the model is called. */
function clocked(window: ContextWindow, add: (ms: number) => void): ContextWindow {
  const call = async (turn: TurnWindow, request: Parameters<TurnWindow['call']>[0]) => {
    const start = performance.now();
    return turn.call({
      ...request,
      next: (fitting) => {
        add(performance.now() - start);
        return request.next(fitting);
      },
    });
  };
  return {
    ...window,
    openTurn: (scope) => {
      const turn = window.openTurn(scope);
      return {
        call: (request) => call(turn, request),
        afterTurn: (ended) => turn.afterTurn(ended),
        get summaryUsage() {
          return turn.summaryUsage;
        },
        get report() {
          return turn.report;
        },
      };
    },
  };
}

const spec = JSON.parse(process.argv[2]!) as AssemblySpec;
let assembled = 0;
const window = spec.window && contextWindow({ maxTokens: 8_000, history: WINDOWS[spec.window]() });
const talker = await longTalker(spec, window && clocked(window, (ms) => (assembled += ms)));
answerRequests(async (request: AssemblyRequest) => {
  if (request === 'assembled') return assembled;
  await window?.settled();
  assembled = 0;
  return timed(() => talker.send());
});
