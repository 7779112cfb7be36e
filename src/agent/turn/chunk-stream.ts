import type { AgentFinishReason, AgentStreamChunk, Artifact, ClientTransform } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { describeThrown } from '../../errors.ts';
import { copyJson } from '../../json/value.ts';
import type { Session } from '../../session/session.ts';
import { CustomPatches } from './custom-patches.ts';

/** What a {@link ChunkStream} is made of. */
export interface ChunkStreamOptions<State> {
  session: Session<State>;
  /** Delivers a chunk; may throw when nobody listens any more. */
  send: (chunk: AgentStreamChunk) => void;
  transform?: ClientTransform<State>;
}

/**
 * What the caller sees of a running agent, in order: what the model and the tools say, artifacts and changes of the custom state as they
 * happen, and each turn's end. No failure of the stream or of the transform reaches the turn; a chunk that the transform chokes on is not sent.
 */
export class ChunkStream<State> {
  readonly #session: Session<State>;
  readonly #send: (chunk: AgentStreamChunk) => void;
  readonly #transform: ClientTransform<State>['chunk'];
  readonly #patches: CustomPatches<State>;
  #open = true;

  constructor({ session, send, transform }: ChunkStreamOptions<State>) {
    this.#session = session;
    this.#send = send;
    this.#transform = transform?.chunk;
    this.#patches = new CustomPatches(session, transform?.state);
    session.on('artifactAdded', this.#onArtifact);
    session.on('artifactUpdated', this.#onArtifact);
    session.on('customChanged', this.#onCustom);
  }

  /** Nothing is sent any more. */
  close(): void {
    this.#open = false;
    this.#session.off('artifactAdded', this.#onArtifact);
    this.#session.off('artifactUpdated', this.#onArtifact);
    this.#session.off('customChanged', this.#onCustom);
  }

  send(chunk: AgentStreamChunk): void {
    if (!this.#open) return;
    const visible = this.#transform ? this.#guard('chunk', () => this.#transform?.(copyChunk(chunk))) : chunk;
    if (!visible) return;
    try {
      this.#send(visible);
    } catch {
      // The caller has gone: the turn goes on without it.
    }
  }

  beginTurn(): void {
    this.#guard('state', () => this.#patches.restart());
  }

  /** The handler is done: what it changed in the custom state without saying so is told now. */
  endState(): void {
    if (!this.#open) return;
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
    if (!this.#open) return;
    const customPatch = this.#guard('state', () => this.#patches.next());
    if (customPatch && customPatch.length > 0) this.send({ customPatch });
  };

  #guard<T>(what: 'chunk' | 'state', project: () => T): T | undefined {
    try {
      return project();
    } catch (error) {
      logger.error(
        `A stream chunk was not sent because its ${what} could not be projected for the client. ${describeThrown(error)}`,
      );
      return undefined;
    }
  }
}

/** The transform may change what it gets, and the model's own code still reads it. */
function copyChunk(chunk: AgentStreamChunk): AgentStreamChunk {
  return JSON.parse(JSON.stringify(chunk)) as AgentStreamChunk;
}
