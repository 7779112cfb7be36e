import { randomBytes } from 'node:crypto';
import { envelope, localKeys } from 'genkitx-agents/privacy';
import { isTorture } from '../../support/scale.ts';
import { runKit } from './support/kit.ts';

runKit({}, { effort: isTorture ? 0.05 : 0.02 });
// Small ones: short sessions have what large ones need.
runKit(
  { checkpointInterval: 3, shardSize: 1024 },
  isTorture ? { effort: 0.03 } : { effort: 0.02, subjects: ['model'] },
);
if (isTorture) runKit({ checkpointInterval: 1 }, { effort: 0.02 });
const keys = localKeys(randomBytes(32));
runKit(
  { checkpointInterval: 3, shardSize: 1024 },
  isTorture ? { effort: 0.03 } : { effort: 0.02, subjects: ['model'] },
  () => envelope({ keys }),
);
