import type { Firestore } from '@google-cloud/firestore';

/** Runs `work` before each commit of a client is sent, and tells it the commit's number. */
export function beforeCommits(db: Firestore, work: (commit: number) => Promise<unknown>): void {
  const begin = db.batch.bind(db);
  let commits = 0;
  db.batch = () => {
    const batch = begin();
    const send = batch.commit.bind(batch);
    batch.commit = async () => {
      await work(++commits);
      return send();
    };
    return batch;
  };
}

/** Runs `work` when a read of documents by a client was answered, and tells it the read's number. */
export function afterReads(db: Firestore, work: (read: number) => Promise<unknown>): void {
  const send = db.getAll.bind(db);
  let reads = 0;
  db.getAll = async (...args) => {
    const answer = await send(...args);
    await work(++reads);
    return answer;
  };
}
