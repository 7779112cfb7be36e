import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take many minutes in their long form, the longest first. */
const LONG = [
  'stores/firestore/conformance.test.ts',
  'stores/file/conformance.test.ts',
  'stores/file/processes/crash.test.ts',
  'stores/firestore/outage.test.ts',
  'stores/file/processes/scopes.test.ts',
  'stores/in-memory/conformance.test.ts',
];

/** Begins with them: one that came last would keep one worker for itself while the other has nothing left to do. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((file) => moduleId.endsWith(`/test/${file}`));
      return at < 0 ? LONG.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
