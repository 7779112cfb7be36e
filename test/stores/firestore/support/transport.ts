import { createRequire } from 'node:module';

/** The traffic on the wire, counted in gRPC's transport: nothing is estimated. */
export interface Traffic {
  /** Documents read: found and missing ones, those of queries (at least one each) and of listeners. */
  reads: number;
  /** Writes of successful commits. */
  writes: number;
  deletes: number;
  rpcs: number;
  /** Bytes of all messages, both ways. */
  bytes: number;
}

type Serialize = (value: unknown) => Buffer;
type Deserialize = (bytes: Buffer) => unknown;

/** The description of a method for gRPC. */
interface Method {
  path: string;
  requestSerialize: Serialize;
  responseDeserialize: Deserialize;
}

/** The used parts of messages of Firestore's protocol. */
interface Message {
  found?: unknown;
  missing?: unknown;
  document?: unknown;
  documentChange?: unknown;
  writes?: { delete?: string | null }[];
}

const traffic: Traffic = { reads: 0, writes: 0, deletes: 0, rpcs: 0, bytes: 0 };
let isWrapped = false;

/** The traffic of this process so far. The first call wraps the transport of every client of Firestore. */
export function trafficSoFar(): Traffic {
  if (!isWrapped) wrapTransport();
  isWrapped = true;
  return { ...traffic };
}

/** The traffic of `work`. */
export async function trafficOf(work: () => Promise<unknown>): Promise<Traffic> {
  const before = trafficSoFar();
  await work();
  return difference(trafficSoFar(), before);
}

export function difference(after: Traffic, before: Traffic): Traffic {
  const entries = Object.entries(after).map(([key, value]) => [key, value - before[key as keyof Traffic]]);
  return Object.fromEntries(entries);
}

const commitListeners: (() => void)[] = [];

/** Runs `listener` whenever a commit is about to be sent. */
export function beforeCommit(listener: () => void): void {
  trafficSoFar();
  commitListeners.push(listener);
}

function wrapTransport(): void {
  const ofTest = createRequire(import.meta.url);
  // The copy of gRPC that Firestore's client uses.
  const ofFirestore = createRequire(ofTest.resolve('@google-cloud/firestore'));
  const ofGax = createRequire(ofFirestore.resolve('google-gax'));
  const interceptors = ofGax('@grpc/grpc-js/build/src/client-interceptors') as {
    getInterceptingCall: (this: void, args: unknown, method: Method, ...rest: unknown[]) => unknown;
  };
  const original = interceptors.getInterceptingCall;
  interceptors.getInterceptingCall = (args, method, ...rest) => {
    const counter = new CallCounter(method.path.slice(method.path.lastIndexOf('/') + 1));
    const requestSerialize: Serialize = (value) => counter.sent(value as Message, method.requestSerialize(value));
    const responseDeserialize: Deserialize = (bytes) =>
      counter.received(method.responseDeserialize(bytes) as Message, bytes);
    return original(args, { ...method, requestSerialize, responseDeserialize }, ...rest);
  };
}

class CallCounter {
  readonly #method: string;
  #documents = 0;
  #written: Message['writes'] = [];

  constructor(method: string) {
    this.#method = method;
    traffic.rpcs++;
    // A query is billed as one read at least.
    if (method === 'RunQuery') traffic.reads++;
  }

  sent(message: Message, bytes: Buffer): Buffer {
    traffic.bytes += bytes.length;
    if (this.#method === 'Commit') {
      this.#written = message.writes ?? [];
      for (const listener of commitListeners) listener();
    }
    return bytes;
  }

  received(message: Message, bytes: Buffer): Message {
    traffic.bytes += bytes.length;
    if (this.#method === 'BatchGetDocuments' && (message.found || message.missing)) traffic.reads++;
    if (this.#method === 'Listen' && message.documentChange) traffic.reads++;
    if (this.#method === 'RunQuery' && message.document && this.#documents++ > 0) traffic.reads++;
    if (this.#method === 'Commit') {
      const deletes = this.#written!.filter((write) => write.delete).length;
      traffic.deletes += deletes;
      traffic.writes += this.#written!.length - deletes;
    }
    return message;
  }
}
