import { randomBytes } from 'node:crypto';
import { envelope, localKeys } from 'genkitx-agents/privacy';
import { RANDOM } from '../../../conformance/support/random-subjects.ts';
import { isTorture } from '../../../support/scale.ts';
import { runKit } from '../support/kit.ts';

// Small shards, so that short sessions have shards like large ones.
const SMALL = { checkpointInterval: 3, shardSize: 1024 };

runKit(SMALL, { effort: isTorture ? 0.05 : 0.005 });
if (isTorture) {
  runKit({}, { effort: 0.01, subjects: RANDOM });
  runKit({ checkpointInterval: 1 }, { effort: 0.01, subjects: RANDOM });
}
const keys = localKeys(randomBytes(32));
runKit(SMALL, isTorture ? { effort: 0.01 } : { effort: 0.005, subjects: ['reopening and closing'] }, () =>
  envelope({ keys }),
);
