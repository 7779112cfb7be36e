import type { RequestHandler } from 'express';
import { isLoopback } from '../config.ts';

/**
 * The page may only use resources of this server.
 *
 * @param services Other addresses that it may call: the sign-in services.
 */
export function securityHeaders(services: readonly string[] = []): RequestHandler {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    ["connect-src 'self'", ...services].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const headers = {
    'content-security-policy': policy.join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
  return (_request, response, next) => {
    response.set(headers);
    next();
  };
}

/**
 * Keeps other web sites out, because the sample has no login. It refuses pages of another origin. While only this machine can reach the
 * server, it also refuses all host names except this machine's own (against DNS rebinding).
 */
export function refuseStrangers(host: string): RequestHandler {
  return (request, response, next) => {
    const problem = isLoopback(host) && !isOwnName(request.headers.host) ? wrongHost : crossOrigin(request.headers);
    if (!problem) next();
    else response.status(403).json({ status: 'PERMISSION_DENIED', message: problem });
  };
}

const wrongHost = 'This server answers to localhost and 127.0.0.1 only.';

function isOwnName(hostHeader: string | undefined): boolean {
  const url = hostHeader && URL.canParse(`http://${hostHeader}`) ? new URL(`http://${hostHeader}`) : undefined;
  return url !== undefined && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
}

function crossOrigin({ origin, host }: { origin?: string; host?: string }): string | undefined {
  if (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)) return undefined;
  return 'Pages of another origin may not use this server.';
}
