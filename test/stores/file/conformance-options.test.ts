import { runKit } from './support/kit.ts';

// How often a whole state is written: where short sessions have what long ones need.
runKit({ checkpointInterval: 1 }, { effort: 0.1 });
runKit({ checkpointInterval: 3 }, { effort: 0.1 });
