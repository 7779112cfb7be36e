import type { JsonPatch } from '../../json/patch/diff.ts';
import { formatPointer } from '../../json/pointer.ts';

/**
 * The patch that replaces each placeholder by its original, and changes nothing else: other values may change before the patch is applied.
 *
 * @param redacted The original with placeholders: the same members and elements in the same order, some members under other names.
 */
export function patchToOriginal(redacted: unknown, original: unknown): JsonPatch {
  const patch: JsonPatch = [];
  collect(redacted, original, [], patch);
  return patch;
}

function collect(redacted: unknown, original: unknown, path: readonly (string | number)[], patch: JsonPatch): void {
  if (redacted === original) return;
  if (typeof redacted !== 'object' || typeof original !== 'object' || redacted === null || original === null) {
    patch.push({ op: 'replace', path: formatPointer(path), value: original });
    return;
  }
  const names = Object.keys(redacted);
  for (const [i, [name, member]] of Object.entries(original).entries()) {
    const redactedName = names[i]!;
    if (redactedName === name) {
      collect((redacted as Record<string, unknown>)[name], member, [...path, name], patch);
    } else {
      patch.push(
        { op: 'remove', path: formatPointer([...path, redactedName]) },
        { op: 'add', path: formatPointer([...path, name]), value: member },
      );
    }
  }
}
