import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { findOnDisk, newFolder } from '../support.ts';
import { redactsWhenKilled } from './kill-suite.ts';

redactsWhenKilled('files', async () => {
  const folder = newFolder();
  return {
    spec: { folder },
    find: async (values) => findOnDisk(folder, values),
    open: () => new FileSessionStore(join(folder, 'store')),
  };
});
