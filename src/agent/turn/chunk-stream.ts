import type { AgentFinishReason, AgentStreamChunk, Artifact, ClientTransform } from 'genkit/beta';
import { logError } from '../../errors.ts';
import { copyJson } from '../../json/value.ts';
import type { Session } from '../../session/session.ts';
import { CustomPatches } from './custom-patches.ts';

export interface ChunkStreamOptions<State> {
  session: Session<State>;
  /** Delivers a chunk. May throw when the caller no longer listens. */
  send: (chunk: AgentStreamChunk) => void;
  transform?: ClientTransform<State>;
}

/**
 * The caller's view of a running agent, in order: chunks of the model and the tools, artifacts and changes of the custom state as they happen,
 * and the end of each turn. A failure of the stream or of the transform never reaches the turn; a chunk on which the transform throws is not sent.
 */
export class ChunkStream<State> {
  readonly #session: Session<State>;
  readonly #send: (chunk: AgentStreamChunk) => void;
  readonly #transform: ClientTransform<State>['chunk'];
  readonly #patches: CustomPatches<State>;
  #isOpen = true;

  constructor({ session, send, transform }: ChunkStreamOptions<State>) {
    this.#session = session;
    this.#send = send;
    this.#transform = transform?.chunk;
    this.#patches = new CustomPatches(session, transform?.state);
    session.on('artifactAdded', this.#onArtifact);
    session.on('artifactUpdated', this.#onArtifact);
    session.on('customChanged', this.#onCustom);
  }

  /** Drops all further chunks. */
  close(): void {
    this.#isOpen = false;
    this.#session.off('artifactAdded', this.#onArtifact);
    this.#session.off('artifactUpdated', this.#onArtifact);
    this.#session.off('customChanged', this.#onCustom);
  }

  send(chunk: AgentStreamChunk): void {
    if (!this.#isOpen) return;
    const visible = this.#transform ? this.#guard('chunk', () => this.#transform?.(copyChunk(chunk))) : chunk;
    if (!visible) return;
    try {
      this.#send(visible);
    } catch {
      // The caller has disconnected; the turn continues without it.
    }
  }

  beginTurn(): void {
    this.#guard('state', () => this.#patches.restart());
  }

  /** Sends the changes of the custom state that the handler did not announce. Called when the handler has ended. */
  endState(): void {
    if (!this.#isOpen) return;
    const customPatch = this.#guard('state', () => this.#patches.rest());
    if (customPatch && customPatch.length > 0) this.send({ customPatch });
  }

  endTurn(turn: { snapshotId?: string; finishReason?: AgentFinishReason }): void {
    const { snapshotId, finishReason } = turn;
    this.send({ turnEnd: { ...(snapshotId !== undefined && { snapshotId }), ...(finishReason && { finishReason }) } });
  }

  readonly #onArtifact = (artifact: Artifact): void => {
    this.send({ artifact: copyJson(artifact) });
  };

  readonly #onCustom = (): void => {
    if (!this.#isOpen) return;
    const customPatch = this.#guard('state', () => this.#patches.next());
    if (customPatch && customPatch.length > 0) this.send({ customPatch });
  };

  #guard<T>(what: 'chunk' | 'state', project: () => T): T | undefined {
    try {
      return project();
    } catch (error) {
      logError(`A stream chunk was not sent because its ${what} could not be transformed for the client.`, error);
      return undefined;
    }
  }
}

/** Copied because the transform may change its argument, and the model's own code still reads the chunk. */
function copyChunk(chunk: AgentStreamChunk): AgentStreamChunk {
  return JSON.parse(JSON.stringify(chunk)) as AgentStreamChunk;
}
