import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest, in a run of the tests or in `npm run torture`, the longest first. */
const LONG = [
  'stores/firestore/client/outage.test.ts',
  'stores/firestore/kit/conformance.test.ts',
  'stores/firestore/kit/memory-conformance.test.ts',
  'samples/deployed.test.ts',
  'stores/file/processes/crash.test.ts',
  'stores/file/kit/conformance.test.ts',
  'stores/firestore/use/survival.test.ts',
  'context/processes/survival.test.ts',
  'browser/chat.test.ts',
  'browser/looks.test.ts',
  'stores/file/open/durability.test.ts',
  'conformance/bites.test.ts',
  'docs/examples.test.ts',
  'package/install.test.ts',
  'stores/firestore/kit/session-service.test.ts',
  'stores/firestore/remove/erase-user.test.ts',
  'privacy/firestore/killed.test.ts',
  'react/pages.test.ts',
  'memory/pipeline/processes.test.ts',
  'cli/process.test.ts',
  'memory/pipeline/guard.test.ts',
  'agent/processes/worker-death.test.ts',
  'privacy/redaction/conformance.test.ts',
  'server/streams/slow-readers.test.ts',
  'privacy/redaction/processes/killed.test.ts',
  'privacy/regexes.test.ts',
  'stores/in-memory/in-memory-session-store.test.ts',
  'stores/file/remove/pruning.test.ts',
  'docs/hovers.test.ts',
  'stores/file/processes/contention.test.ts',
  'stores/file/processes/scopes.test.ts',
  'browser/inspector/large-sessions.test.ts',
  'browser/inspector/safety.test.ts',
  'browser/running.test.ts',
  'inspector/command.test.ts',
  'browser/approval.test.ts',
];

/** Project by project, begins with them: one that came last would keep one worker for itself while the others have nothing left to do. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = LONG.findIndex((file) => moduleId.endsWith(`/test/${file}`));
      return place < 0 ? LONG.length : place;
    };
    const compare = (a: TestSpecification, b: TestSpecification): number =>
      projects.indexOf(a.project.name) - projects.indexOf(b.project.name) || placeOf(a) - placeOf(b);
    return sorted.toSorted(compare);
  }
}
