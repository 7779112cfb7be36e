import type { ScopeChange, ScopeId, SessionStoreOptions } from '../../../../src/store/contract.ts';
import { InMemorySessionStore } from '../../../../stores/in-memory/in-memory-session-store.ts';
import { replacing, type Methods, type Mutant } from './mutant.ts';

/** Changes records in a separate save. */
async function applyApart(
  sound: Methods,
  scopes: readonly ScopeChange[] | undefined,
  options: SessionStoreOptions | undefined,
): Promise<void> {
  if (!scopes?.length) return;
  const createdAt = new Date().toISOString();
  await sound.saveSnapshot(undefined, () => ({ createdAt }), { context: options?.context, scopes });
}

/** A correct store that uses `name(id)` as the id of a record. */
function naming(name: (id: ScopeId) => ScopeId): Mutant['make'] {
  return replacing((sound) => ({
    readScopes: (options) => sound.readScopes({ ...options, scopes: options.scopes.map(name) }),
    deleteScope: (options) => sound.deleteScope({ ...options, scope: name(options.scope) }),
    saveSnapshot: (id, mutator, options) => {
      const scopes = options?.scopes?.map(({ id: scope, change }) => ({ id: name(scope), change }));
      return sound.saveSnapshot(id, mutator, { ...options, ...(scopes && { scopes }) });
    },
  }));
}

/** Records that sessions share. */
export const scoping: readonly Mutant[] = [
  {
    fault: 'changes records even if the mutator skipped',
    subject: 'scopes',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        const saved = await sound.saveSnapshot(id, mutator, options);
        if (saved === null) await applyApart(sound, options?.scopes, options);
        return saved;
      },
    })),
  },
  {
    fault: 'changes records before it compares the leaf',
    subject: 'scopes',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, { scopes, ...options } = {}) => {
        let isSkipped = false;
        await sound.saveSnapshot(id, (current) => ((isSkipped = mutator(current) === null), null), options);
        if (!isSkipped) await applyApart(sound, scopes, options);
        return sound.saveSnapshot(id, mutator, options);
      },
    })),
  },
  {
    fault: 'saves the snapshot before it checks the changes of records',
    subject: 'scopes',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, { scopes, ...options } = {}) => {
        const saved = await sound.saveSnapshot(id, mutator, options);
        if (saved !== null) await applyApart(sound, scopes, options);
        return saved;
      },
    })),
  },
  {
    fault: 'reads records, waits, and writes a result of the outdated read',
    subject: 'scopes',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        const ids = options?.scopes?.map((scope) => scope.id) ?? [];
        const read = ids.length > 0 ? await sound.readScopes({ ...options, scopes: ids }) : [];
        await new Promise((resolve) => setImmediate(resolve));
        const scopes = options?.scopes?.map((scope, i) => ({ id: scope.id, change: () => scope.change(read[i]!) }));
        return sound.saveSnapshot(id, mutator, { ...options, ...(scopes && { scopes }) });
      },
    })),
  },
  {
    fault: 'joins the names of app and user',
    subject: 'scopes',
    make: naming((id) => {
      if (id?.scope !== 'user' || typeof id.userId !== 'string' || id.userId.length > 500) return id;
      return { ...id, appName: 'joined', userId: `${id.appName}/${id.userId}` };
    }),
  },
  {
    fault: 'gives all tenants the same records',
    subject: 'scopes',
    make: (options) => {
      const common = new InMemorySessionStore();
      const make = replacing((sound) => ({
        readScopes: async (call) => {
          await sound.readScopes(call);
          return common.readScopes({ scopes: call.scopes });
        },
        deleteScope: async (call) => {
          await sound.deleteScope(call);
          return common.deleteScope({ scope: call.scope });
        },
        saveSnapshot: async (id, mutator, call) => {
          const saved = await sound.saveSnapshot(id, mutator, call);
          if (saved !== null && call?.scopes) {
            await common.saveSnapshot(undefined, () => ({ createdAt: '' }), { scopes: call.scopes });
          }
          return saved;
        },
      }));
      return make(options);
    },
  },
  {
    fault: 'removes the records with the session',
    subject: 'scopes',
    make: replacing((sound) => {
      const named = new Map<string, ScopeId>();
      return {
        saveSnapshot: (id, mutator, options) => {
          for (const scope of options?.scopes ?? []) named.set(JSON.stringify(scope.id), scope.id);
          return sound.saveSnapshot(id, mutator, options);
        },
        deleteSession: async (options) => {
          for (const scope of named.values()) await sound.deleteScope({ context: options.context, scope });
          return sound.deleteSession(options);
        },
      };
    }),
  },
  {
    fault: 'keeps the records in the snapshots',
    subject: 'scopes',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        const ids = options?.scopes?.map((scope) => scope.id) ?? [];
        const saved = await sound.saveSnapshot(id, mutator, options);
        if (saved === null || ids.length === 0) return saved;
        const records = await sound.readScopes({ ...options, scopes: ids });
        const call = { context: options?.context };
        return sound.saveSnapshot(saved, (current) => Object.assign({ ...current! }, { records }), call);
      },
    })),
  },
  {
    fault: 'sets the prototype of a record for the member __proto__',
    subject: 'scopes',
    make: replacing((sound) => ({
      readScopes: async (options) => {
        const records = await sound.readScopes(options);
        return records.map((record) => {
          const copy: typeof record = {};
          for (const [key, value] of Object.entries(record)) copy[key] = value;
          return copy;
        });
      },
    })),
  },
  {
    fault: 'lists only one page of records',
    subject: 'scopes',
    make: replacing((sound) => ({
      listScopes: async (options) => ({ items: (await sound.listScopes(options)).items }),
    })),
  },
  {
    fault: 'does not remove a record',
    subject: 'scopes',
    make: replacing((sound) => ({
      deleteScope: async (options) => {
        const [record] = await sound.readScopes({ ...options, scopes: [options.scope] });
        return Object.keys(record!).length > 0;
      },
    })),
  },
];
