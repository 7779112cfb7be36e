import { runKit } from './support/kit.ts';

/** How a state is cut into documents has no part in these: they are tried with the default options. */
const except = ['ids', 'lookups and errors', 'lists', 'scopes'];

// Small ones, so that much of what large sessions need happens in short ones.
runKit({ checkpointInterval: 3, shardSize: 1024 }, { effort: 0.04, tenants: false, except });
runKit({ checkpointInterval: 1 }, { effort: 0.02, tenants: false, except });
