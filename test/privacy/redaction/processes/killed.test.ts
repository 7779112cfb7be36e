import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { findOnDisk } from '../support.ts';
import { redactsWhenKilled } from './kill-suite.ts';

redactsWhenKilled('files', async () => {
  const folder = temporaryFolder();
  return {
    spec: { folder },
    find: async (values) => findOnDisk(folder, values),
    open: () => new FileSessionStore(join(folder, 'store')),
  };
});
