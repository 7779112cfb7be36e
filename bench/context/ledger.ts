import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/** A message in a common form for all frameworks. */
export interface Line {
  readonly role: string;
  readonly text: string;
}

/** The tokens of a message in addition to its text. */
const MESSAGE_TOKENS = 4;

const known = new Map<string, number>();

/** Tokens by a real tokenizer. Each text is counted once. */
export function tokensOf(lines: readonly Line[]): number {
  return lines.reduce((sum, { text }) => {
    const tokens = known.get(text) ?? countTokens(text);
    known.set(text, tokens);
    return sum + tokens + MESSAGE_TOKENS;
  }, 0);
}

/** Counts the tokens that were sent to the models in a conversation. */
export class Ledger {
  /** The tokens of each turn, including summaries. */
  readonly byTurn: number[] = [];
  /** The part of all tokens that summarizers read. */
  forSummaries = 0;
  /** The largest request of the agent. */
  largest = 0;

  /** Begins the next turn. */
  beginTurn(): void {
    this.byTurn.push(0);
  }

  /** Records a request of the agent. Returns its tokens, like a model. */
  agentSent(lines: readonly Line[]): number {
    const tokens = this.#add(lines);
    this.largest = Math.max(this.largest, tokens);
    return tokens;
  }

  summarizerSent(lines: readonly Line[]): number {
    const tokens = this.#add(lines);
    this.forSummaries += tokens;
    return tokens;
  }

  get total(): number {
    return this.byTurn.reduce((sum, tokens) => sum + tokens, 0);
  }

  #add(lines: readonly Line[]): number {
    const tokens = tokensOf(lines);
    this.byTurn[this.byTurn.length - 1]! += tokens;
    return tokens;
  }
}
