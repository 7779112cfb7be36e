/** Whether a tool is a memory tool. Nothing is learned from its answers: they come from the memory. */
export function isMemoryTool(name: string): boolean {
  return name === 'create_memory' || name === 'load_memory' || name === 'forget_memory';
}
