import type { Command } from 'commander';
import type { Io } from '../../io.ts';
import { addDelete } from './delete.ts';
import { addDiff } from './diff.ts';
import { addList } from './list.ts';
import { addMove } from './move.ts';
import { addPrune } from './prune.ts';
import { addShow } from './show.ts';
import { addTree } from './tree.ts';

/** `sessions ...` */
export function addSessions(program: Command, io: Io): void {
  const sessions = program.command('sessions').description('lists, shows, moves and removes sessions');
  addList(sessions, io);
  addShow(sessions, io);
  addTree(sessions, io);
  addDiff(sessions, io);
  addMove(sessions, io);
  addDelete(sessions, io);
  addPrune(sessions, io);
}
