import type { GenerateRequest, Part } from 'genkit';
import type { SessionStore } from 'genkitx-agents';
import type { ContextReport } from 'genkitx-agents/context';

/** One line for each message of a request. */
export function textsOf({ messages }: Pick<GenerateRequest, 'messages'>): string[] {
  return messages.map(({ role, content }) => `${role}: ${content.map(textOf).join(' + ')}`);
}

function textOf(part: Part): string {
  if (part.toolRequest) return `${part.toolRequest.name}()`;
  if (part.toolResponse) return `${part.toolResponse.name} -> ${JSON.stringify(part.toolResponse.output)}`;
  return part.text ?? '?';
}

export async function contextReportOf(store: SessionStore, snapshotId: string): Promise<ContextReport | undefined> {
  const snapshot = await store.getSnapshot({ snapshotId });
  return (snapshot as { contextReport?: ContextReport } | undefined)?.contextReport;
}
