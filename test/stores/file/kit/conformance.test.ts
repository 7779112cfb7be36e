import { randomBytes } from 'node:crypto';
import { envelope, localKeys } from 'genkitx-agents/privacy';
import { isTorture } from '../../../support/scale.ts';
import { RANDOM } from '../../../conformance/support/random-subjects.ts';
import { runKit } from '../support/kit.ts';

// A short interval, so that short sessions have checkpoints and diffs like long ones.
runKit({ checkpointInterval: 3 }, { effort: isTorture ? 0.3 : 0.06 });
if (isTorture) {
  runKit({}, { effort: 0.1, subjects: RANDOM });
  runKit({ checkpointInterval: 1 }, { effort: 0.1, subjects: RANDOM });
}
const keys = localKeys(randomBytes(32));
runKit({}, isTorture ? { effort: 0.1 } : { effort: 0.03, subjects: RANDOM }, () => envelope({ keys }));
