import type { RequestHandler } from 'express';
import { isLoopback } from '../config.ts';

/**
 * The page may use what this server serves, and nothing else.
 *
 * @param services Addresses that it may call besides: those by which one signs in.
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
 * There is no log-in, so what keeps other web sites out is this: a page of another origin may not call us, and while only this machine can
 * reach us, no name but this machine's own may be used for us (which defeats DNS rebinding).
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
