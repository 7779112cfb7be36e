import { Refusal } from '../../server/answer/refusal.ts';

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Refuses requests of other pages. The check of the host refuses pages whose own host name resolves to this machine; `Origin` and
 * `Sec-Fetch-Site` refuse pages of other servers on this machine, which share the cookies.
 *
 * @param hosts Names that are allowed besides those of the loopback interface.
 * @throws Refusal 403
 */
export function assertSameOrigin(request: Request, url: URL, hosts: readonly string[]): void {
  const named = [url.host, request.headers.get('host') ?? url.host];
  for (const host of named) {
    const name = host.replace(/:\d*$/, '').toLowerCase();
    if (!LOOPBACK.has(name) && !hosts.includes(name)) {
      throw forbidden("This host name is not allowed. Pass it in the option 'hosts'.");
    }
  }
  const origin = request.headers.get('origin');
  if (origin !== null && originHost(origin) !== named[1]) throw forbidden('The inspector answers only its own page.');
  const site = request.headers.get('sec-fetch-site');
  const isOwn = site === null || site === 'same-origin' || site === 'none';
  // A link may open the page: the site with the link can't read the page.
  const isLink = request.method === 'GET' && request.headers.get('sec-fetch-mode') === 'navigate';
  const isDocument = request.headers.get('sec-fetch-dest') === 'document';
  if (!isOwn && !(isLink && isDocument)) throw forbidden('The inspector answers only its own page.');
}

function originHost(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
}

function forbidden(message: string): Refusal {
  return new Refusal(403, 'PERMISSION_DENIED', message);
}
