import type { Firestore } from '@google-cloud/firestore';

/** Runs `work` with the commit's number before each commit of a client. */
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

/** Runs `work` with the read's number after each read of documents by a client. */
export function afterReads(db: Firestore, work: (read: number) => Promise<unknown>): void {
  const send = db.getAll.bind(db);
  let reads = 0;
  db.getAll = async (...args) => {
    const answer = await send(...args);
    await work(++reads);
    return answer;
  };
}
