import type { TurnContext, TurnHandler } from '../../session/turn.ts';

/** Must be awaited before an interrupted tool runs. Rejects when the tool must not run. */
export type ToolGate = () => Promise<void>;

/** Handlers that pass the gate themselves. */
const passing = new WeakSet<TurnHandler>();
const gates = new WeakMap<TurnContext, ToolGate>();

/** Marks a handler that passes the gate of its turn before each tool. For other handlers it is unknown when, and whether, their tools run. */
export function passesGate(handler: TurnHandler): TurnHandler {
  passing.add(handler);
  return handler;
}

/** Whether the handler is marked. */
export function doesPassGate(handler: TurnHandler): boolean {
  return passing.has(handler);
}

/** Sets the gate of the turn. It is passed at once, unless the handler passes it itself. */
export async function setGate(handler: TurnHandler, turn: TurnContext, gate: ToolGate): Promise<void> {
  if (doesPassGate(handler)) gates.set(turn, gate);
  else await gate();
}

/** The gate of a turn; `undefined` when the turn restarts no tool. */
export function gateOf(turn: TurnContext): ToolGate | undefined {
  return gates.get(turn);
}
