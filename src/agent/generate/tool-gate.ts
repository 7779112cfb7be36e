import type { TurnContext, TurnHandler } from '../../session/session-runner.ts';

/** Has to be awaited before a tool that was interrupted runs; rejects when it must not. */
export type ToolGate = () => Promise<void>;

/** Handlers that see their tools start. */
const seeing = new WeakSet<TurnHandler>();
const gates = new WeakMap<TurnContext, ToolGate>();

/** Marks a handler that passes the gate of its turn before each tool. Of any other it is unknown when, and whether, its tools run. */
export function passesGate(handler: TurnHandler): TurnHandler {
  seeing.add(handler);
  return handler;
}

/** Whether the handler was marked so. */
export function doesPassGate(handler: TurnHandler): boolean {
  return seeing.has(handler);
}

/** Closes the gate behind the turn: passed at once, unless the handler does it. */
export async function setGate(handler: TurnHandler, turn: TurnContext, gate: ToolGate): Promise<void> {
  if (doesPassGate(handler)) gates.set(turn, gate);
  else await gate();
}

/** The gate of a turn; `undefined` where nothing that was interrupted is run again. */
export function gateOf(turn: TurnContext): ToolGate | undefined {
  return gates.get(turn);
}
