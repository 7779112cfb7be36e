/** An agent in a long session, with or without a window, in a process of its own. Started by `assembly.ts` only. */
import { contextWindow, type ContextWindow, type TurnWindow } from 'genkitx-agents/context';
import { answerRequests } from '../answer-requests.ts';
import { timed } from '../measure.ts';
import { longTalker, WINDOWS, type LongSession, type WindowName } from './long-talker.ts';

export interface AssemblySpec extends LongSession {
  readonly name: string;
  /** Default: no window. */
  readonly window?: WindowName;
}

/** The requests of the parent. */
export type AssemblyRequest =
  /** Adds a turn; returns its ms. */
  | 'turn'
  /** Returns the ms for assembling the requests of the last turn, each from the call of the window to the call of the model. */
  | 'assembled';

/** The window, with a clock around its work before the model call. */
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
