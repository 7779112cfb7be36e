import { runKit } from './support/kit.ts';

// Small ones, so that much of what large sessions need happens in short ones.
runKit({ checkpointInterval: 3, shardSize: 1024 }, { effort: 0.04, tenants: false });
runKit({ checkpointInterval: 1 }, { effort: 0.02, tenants: false });
