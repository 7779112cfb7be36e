import { z } from 'genkit';
import { extractJson } from 'genkit/extract';
import type { ModelMiddleware } from 'genkit/model';

/** Applies {@link fitAnswer} to the model's answer before Genkit checks it. */
export function answerFitter(schema: z.ZodTypeAny): ModelMiddleware {
  return async (request, next) => {
    const response = await next(request);
    const text = (response.message?.content ?? []).map((part) => part.text ?? '').join('');
    let answer: unknown;
    try {
      answer = isCut(text) ? undefined : extractJson(text);
    } catch {
      // Genkit reports the error.
    }
    if (answer === undefined || answer === null) return response;
    const content = [{ text: JSON.stringify(fitAnswer(answer, schema)) }];
    return { ...response, message: { role: 'model', content } };
  };
}

/** Whether the JSON in a text has no end. Genkit would complete it, so a fact that is cut in the middle would pass as a whole one. */
export function isCut(text: string): boolean {
  const start = text.search(/[{[]/);
  if (start < 0) return false;
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'));
  const signs = text.slice(start, end + 1).replaceAll(/"(?:\\.|[^"\\])*"/gs, '');
  return signs.split(/[{[]/).length !== signs.split(/[}\]]/).length;
}

/** Describes the first fault that a schema found. */
export function firstFault({ issues }: z.ZodError): string {
  const { path, message } = issues[0]!;
  return `at ${JSON.stringify(path.join('.'))}: ${message}.`;
}

/**
 * Changes what many models get wrong, where it is clear what they mean: null for an optional member that may not be null, a number as a text,
 * one item in place of a list.
 */
export function fitAnswer(value: unknown, schema: z.ZodTypeAny): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return fitAnswer(value, schema.unwrap() as z.ZodTypeAny);
  if (schema instanceof z.ZodArray && value !== undefined && value !== null) {
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return items.map((item) => fitAnswer(item, schema.element as z.ZodTypeAny));
  }
  if (schema instanceof z.ZodNumber && typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value))
    return Number(value);
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value;
  const shape = new Map(Object.entries(schema.shape as z.ZodRawShape));
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const expected = shape.get(name);
    if (!expected) return [[name, member]];
    const isAbsent = member === null && expected.isOptional() && !expected.isNullable();
    return isAbsent ? [] : [[name, fitAnswer(member, expected)]];
  });
  return Object.fromEntries(members);
}
