import { currentSession, type AgentsGenkit } from 'genkitx-agents';
import { NOTHING_KNOWN, type Preferences, type SupportState } from '../state.ts';

/** Changes the state of the running conversation. The change is streamed to the page at once and saved with the turn. */
export function remember(ai: AgentsGenkit, change: (known: SupportState) => Partial<SupportState>): void {
  ai.currentSession<SupportState>().updateCustom((known = NOTHING_KNOWN) => ({ ...known, ...change(known) }));
}

/** The state of the running turn: keys of the conversation, of the user, and of only this turn. */
export function scratchpad() {
  return currentSession<SupportState, Preferences>().state;
}
