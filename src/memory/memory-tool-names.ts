export const MEMORY_TOOLS = ['load_memory', 'create_memory', 'forget_memory'] as const;

/** Whether a tool is a memory tool. Nothing is learned from the output of these tools, because it consists of memories. */
export function isMemoryTool(name: string): boolean {
  return MEMORY_TOOLS.includes(name as (typeof MEMORY_TOOLS)[number]);
}
