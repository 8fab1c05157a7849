/** Checks how the server is reached: addresses and ports, certificate, private key. */
import type { X509Certificate } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { type Config, isPlainBeyondLoopback } from '../config/config.ts';
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import { formatAddress, isLoopback, parseAddress, withoutBrackets } from '../network/address.ts';
import { DAY_MS } from '../times.ts';
import { type Check, type CheckOutcome, days, ok, problem, SOON_DAYS, skipped, warning } from './check.ts';

const ALL_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

const enabledListeners = (config: Config) =>
  (['server', 'admin', 'console'] as const)
    .map((name) => ({ name, enabled: true, ...config[name] }))
    .filter(({ enabled }) => enabled);

/** Finds listeners with the same port on the same address. */
function checkPorts(config: Config): CheckOutcome[] {
  const listeners = enabledListeners(config).filter(({ port }) => port !== 0);
  const overlap = (left: string, right: string): boolean =>
    left === right || ALL_ADDRESSES.has(left) || ALL_ADDRESSES.has(right);
  return listeners.flatMap(({ name, host, port }, at) =>
    listeners
      .slice(at + 1)
      .filter((other) => other.port === port && overlap(host, other.host))
      .map((other) => problem(`${name}.port and ${other.name}.port are both ${port}`, 'Give each its own port.')),
  );
}

/** Finds addresses that this host does not have: often they belong to the host from which the configuration was copied. */
async function checkAddresses(config: Config): Promise<CheckOutcome[]> {
  const advice =
    'Correct it, or add that address to the host first: otherwise the server does not start (listen_failed).';
  const findings = enabledListeners(config).map(async ({ name, host }): Promise<CheckOutcome[]> => {
    const address = parseAddress(withoutBrackets(host));
    if (address === undefined || (await canBind(formatAddress(address)))) return [];
    return [warning(`${name}.host is ${host}, which no interface of this host has`, advice)];
  });
  return (await Promise.all(findings)).flat();
}

/**
 * Whether a socket can be bound to an address. The kernel accepts more addresses than the interfaces list (routes of type `local`, links
 * without a carrier, `ip_nonlocal_bind`). The trial uses UDP, to which no client can connect, and any free port.
 */
function canBind(address: string): Promise<boolean> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  return new Promise<boolean>((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'EADDRNOTAVAIL'));
    socket.bind({ address, port: 0, exclusive: true }, () => resolve(true));
  }).finally(() => socket.close());
}

/** Checks the listeners as `serve` does before it starts. */
async function checkListeners(config: Config): Promise<CheckOutcome[]> {
  const { server, admin, console } = config;
  const findings = [...checkPorts(config), ...(await checkAddresses(config))];
  if (console.enabled && isPlainBeyondLoopback(config, console.host))
    findings.push(
      problem(`console.host is ${console.host}, without TLS`, 'Configure tls: beyond loopback the console needs it.'),
    );
  if (isPlainBeyondLoopback(config, server.host)) {
    const found = `server.host is ${server.host}, without TLS`;
    findings.push(
      server.plain_http_anywhere
        ? warning(found, 'API keys cross the network in clear text: configure tls.')
        : problem(`plain_http_refused: ${found}`, new PagegateError('plain_http_refused').message),
    );
  }
  if (admin.enabled && !isLoopback(admin.host)) {
    findings.push(warning(`admin.host is ${admin.host}`, 'It needs no key: keep it on loopback or behind a firewall.'));
  }
  return findings.length > 0 ? findings : [ok(`lookups on ${server.host}, port ${server.port}`)];
}

async function checkCertificate(config: Config): Promise<CheckOutcome[]> {
  const { certificate_file, key_file } = config.tls;
  if (certificate_file === null || key_file === null) {
    return [skipped('no certificate is configured: plain HTTP, for loopback only')];
  }
  const { expectedNames, readChain } = await import('../server/read-certificate.ts');
  const { chainAndNameWarnings } = await import('../server/certificate-warnings.ts');
  const { chain, certificate } = readChain(certificate_file);
  const others = chainAndNameWarnings({ chain }, expectedNames(config), Date.now());
  const advice = 'Clients refuse it, or soon will: replace it, then run "pagegate reload".';
  return [judgeDates(certificate), ...others.map((text) => warning(text, advice))];
}

function judgeDates({ subject, validFrom, validTo }: X509Certificate): CheckOutcome {
  const left = Date.parse(validTo) - Date.now();
  const found = `${subject.replaceAll('\n', ', ')}, valid to ${validTo}`;
  if (left < 0)
    return problem(
      found,
      'The certificate has expired, and clients refuse it: replace it, then run "pagegate reload".',
    );
  if (Date.parse(validFrom) > Date.now()) {
    return problem(found, `It is not valid before ${validFrom}: check the clock and the certificate.`);
  }
  if (left >= SOON_DAYS * DAY_MS) return ok(`${found} (${counted(days(left), 'day')})`);
  return warning(found, `It expires in ${counted(days(left), 'day')}: replace it, then run "pagegate reload".`);
}

async function checkPrivateKey(config: Config): Promise<CheckOutcome> {
  const { configuredCertificate } = await import('../server/read-certificate.ts');
  const certificate = configuredCertificate(config.tls);
  if (certificate === undefined) return skipped('no certificate is configured');
  const { createTlsApp } = await import('../server/tls-app.ts');
  createTlsApp(certificate, config.tls.ciphers).close();
  return ok('the private key matches the certificate, and the TLS library accepts both and tls.ciphers');
}

export const LISTENER_CHECKS: readonly Check[] = [
  { id: 'listeners', run: checkListeners },
  { id: 'certificate', run: checkCertificate },
  { id: 'private_key', run: checkPrivateKey },
];
