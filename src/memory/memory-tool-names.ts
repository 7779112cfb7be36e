/** Whether a tool is one of a memory: what it answers is remembered already. */
export function isMemoryTool(name: string): boolean {
  return name === 'create_memory' || name === 'load_memory';
}
