import { currentSession, type AgentsGenkit } from 'genkitx-agents';
import { NOTHING_KNOWN, type Preferences, type SupportState } from '../state.ts';

/** Changes what the running conversation knows. The change is streamed to the page at once and saved with the turn. */
export function remember(ai: AgentsGenkit, change: (known: SupportState) => Partial<SupportState>): void {
  ai.currentSession<SupportState>().updateCustom((known = NOTHING_KNOWN) => ({ ...known, ...change(known) }));
}

/** The scratchpad of the running turn: the conversation's keys, the user's, and those of this turn alone. */
export function scratchpad() {
  return currentSession<SupportState, Preferences>().state;
}
