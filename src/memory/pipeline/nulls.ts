import { z } from 'genkit';
import { extractJson } from 'genkit/extract';
import type { ModelMiddleware } from 'genkit/model';

/** Applies {@link withoutNulls} to the model's answer before Genkit checks it. */
export function nullsRemover(schema: z.ZodTypeAny): ModelMiddleware {
  return async (request, next) => {
    const response = await next(request);
    const text = (response.message?.content ?? []).map((part) => part.text ?? '').join('');
    if (!text.includes('null')) return response;
    let answer: unknown;
    try {
      answer = extractJson(text);
    } catch {
      return response;
    }
    const content = [{ text: JSON.stringify(withoutNulls(answer, schema)) }];
    return { ...response, message: { role: 'model', content } };
  };
}

/**
 * Removes members that are null if the schema has an optional member that may not be null: many models send null instead of omitting a
 * member.
 */
export function withoutNulls(value: unknown, schema: z.ZodTypeAny): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return withoutNulls(value, schema.unwrap() as z.ZodTypeAny);
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((item) => withoutNulls(item, schema.element as z.ZodTypeAny));
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value;
  const shape = new Map(Object.entries(schema.shape as z.ZodRawShape));
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const expected = shape.get(name);
    if (!expected) return [[name, member]];
    const isAbsent = member === null && expected.isOptional() && !expected.isNullable();
    return isAbsent ? [] : [[name, withoutNulls(member, expected)]];
  });
  return Object.fromEntries(members);
}
