import type { Command } from 'commander';
import type { Io } from '../../io.ts';
import { addErase } from './erase.ts';
import { addExport } from './export.ts';
import { addJobs } from './jobs.ts';
import { addList } from './list.ts';
import { addQuarantine } from './quarantine.ts';
import { addSearch } from './search.ts';
import { addShow } from './show.ts';

/** `memories ...` */
export function addMemories(program: Command, io: Io): void {
  const memories = program.command('memories').description('shows, exports and removes long-term memories');
  addList(memories, io);
  addSearch(memories, io);
  addShow(memories, io);
  addJobs(memories, io);
  addQuarantine(memories, io);
  addExport(memories, io);
  addErase(memories, io);
}
