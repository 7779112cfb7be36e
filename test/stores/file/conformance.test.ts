import { runKit } from './support/kit.ts';

runKit({}, { effort: 0.5 });
