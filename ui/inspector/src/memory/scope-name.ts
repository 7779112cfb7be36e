import type { MemoryScopeId } from '../../../../src/inspector/api.ts';

export function nameOfScope(scope: MemoryScopeId): string {
  switch (scope.scope) {
    case 'user':
      return `User ${scope.userId} · ${scope.appName}`;
    case 'session':
      return `Session ${scope.sessionId} · ${scope.appName}`;
    case 'app':
      return `All users · ${scope.appName}`;
  }
}
