import type { AgentResponse } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import { afterChunk, artifactsWith, BEGINNING, newTurn, pointAfter, type Point } from '../../src/react/point.ts';

const response = (more: object) => ({ finishReason: 'stop', interrupts: [], ...more }) as never as AgentResponse;
const turn = () => newTurn<unknown>({ parentId: undefined, input: undefined, known: [] });

it('shows an artifact without a name once, though the output of each turn repeats it', () => {
  const chart = { parts: [{ text: 'a chart' }] };
  const drawing = afterChunk<unknown>(turn(), { raw: { artifact: chart } } as never);
  expect(artifactsWith<unknown>(BEGINNING, drawing)).toEqual([chart]);
  const drawn: Point<unknown> = pointAfter<unknown>(BEGINNING, drawing, response({ artifacts: [chart] }));
  expect(drawn.artifacts).toEqual([chart]);
  expect(pointAfter(drawn, turn(), response({ artifacts: [chart] })).artifacts).toEqual([chart]);
  // A snapshot of a run in the background has all artifacts.
  expect(artifactsWith(drawn, { ...turn(), artifacts: [chart] })).toEqual([chart]);
});
