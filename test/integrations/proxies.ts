/** Starts Debian's Squid and nginx with the shipped configurations, with only the changes that a test on loopback needs. */
import { type ChildProcess, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../tools/free-port.ts';
import type { Way } from './network/client.ts';
import { NODE, put, TOOLS, untilListening, type World } from './world.ts';

/** Starts Squid with its helper, without TLS. Returns the port. Names resolve to a loopback address. */
export async function startSquid(
  world: World,
  server: string,
  hosts: Record<string, string>,
  allowInside = true,
): Promise<number> {
  const lines = Object.entries(hosts).map(([name, address]) => `${address} ${name}\n`);
  const hostsFile = put(world, 'hosts', lines.join(''));
  const shipped = readFileSync(`${TOOLS}squid/squid.conf`, 'utf8');
  // The origin of a test is on loopback, which the shipped file forbids.
  const text = allowInside ? shipped.replaceAll(/^http_access deny to_inside.*\n/gm, '') : shipped;
  return (await runSquid(world, server, text, [`hosts_file ${hostsFile}`, 'dns_nameservers 127.0.0.1'])).port;
}

/** The plain Squid as shipped, with the test's DNS server. `lines` are appended to the configuration. */
export const startSquidAsShipped = (world: World, server: string, lines: readonly string[]): Promise<RunningSquid> =>
  runSquid(world, server, readFileSync(`${TOOLS}squid/squid.conf`, 'utf8'), [...TEST_NAMES, ...lines]);

/** Names are resolved by the test's own server. */
const TEST_NAMES = ['hosts_file none', 'dns_nameservers 127.0.0.53', 'dns_timeout 3 seconds'] as const;

export interface RunningSquid {
  readonly port: number;
  readonly child: ChildProcess;
  /** Squid's own log. */
  readonly logFile: string;
}

/** A Squid that opens TLS, with its own certificate authority and the test's DNS server. `lines` are appended to the configuration. */
export async function startSquidBump(
  world: World,
  server: string,
  siteCa: string,
  lines: readonly string[] = [],
): Promise<RunningSquid & Way> {
  const { authority, certificates, caFile } = makeSquidAuthority(world.folder);
  const text = readFileSync(`${TOOLS}squid/squid-bump.conf`, 'utf8')
    .replace('/etc/squid/pagegate-ca.pem', authority)
    .replace('/var/lib/squid/pagegate-certs', certificates)
    .replace('tls_outgoing_options ', `tls_outgoing_options cafile=${siteCa} `);
  return { ...(await runSquid(world, server, text, [...TEST_NAMES, ...lines])), caFile };
}

/** Creates the certificate authority and the certificate store with the commands in tools/integrations/squid/README.md. */
function makeSquidAuthority(folder: string): { authority: string; certificates: string; caFile: string } {
  const readme = readFileSync(`${TOOLS}squid/README.md`, 'utf8');
  const block = readme.split('<!-- authority -->')[1]?.split('```sh\n')[1]?.split('```')[0] ?? 'false';
  const own = mkdtempSync(join(folder, 'squid-'));
  chmodSync(own, 0o755);
  // As on a fresh Debian, whose packages do not create /var/lib/squid.
  const [authority, store] = [`${own}/pagegate-ca.pem`, `${own}/store`];
  const commands = block.replaceAll('/etc/squid/pagegate-ca.pem', authority).replaceAll('/var/lib/squid', store);
  execFileSync('sh', ['-eu', '-c', commands], { stdio: 'pipe', cwd: own });
  return { authority, certificates: `${store}/pagegate-certs`, caFile: `${own}/pagegate-ca.crt` };
}

/** Starts Squid with a shipped configuration, with the paths and ports of the test. Returns the port. */
async function runSquid(
  world: World,
  server: string,
  shipped: string,
  lines: readonly string[],
): Promise<RunningSquid> {
  const proxy = await freePort();
  const text = shipped
    .replace('127.0.0.1:3128', `127.0.0.1:${proxy}`)
    .replace('/opt/pagegate/node_modules/.bin/node', NODE)
    .replaceAll('/opt/pagegate/tools/integrations/', TOOLS)
    .replace('https://127.0.0.1:8443', `${server} --timeout-ms 1000`)
    .replace('/etc/squid/pagegate.key', world.keyFile)
    .replace('ttl=60', 'ttl=0');
  const rest = [
    `pid_filename ${world.folder}/squid-${proxy}.pid`,
    `cache_log ${world.folder}/cache-${proxy}.log`,
    `coredump_dir ${world.folder}`,
    'pinger_enable off',
    'netdb_filename none',
    'shutdown_lifetime 0 seconds',
    'visible_hostname test',
    ...lines,
  ];
  const configuration = put(world, `squid-${proxy}.conf`, `${text}\n${rest.join('\n')}\n`);
  if (process.getuid?.() === 0) {
    // Squid switches from root to the user "proxy", which must write its logs and read the key.
    const id = (flag: string) => Number(execFileSync('id', [flag, 'proxy'], { encoding: 'utf8' }));
    chownSync(world.folder, id('-u'), id('-g'));
    chownSync(world.keyFile, id('-u'), id('-g'));
  }
  chmodSync(world.folder, 0o755);
  execFileSync('/usr/sbin/squid', ['-k', 'parse', '-f', configuration], { stdio: 'pipe' });
  const child = world.start('/usr/sbin/squid', ['-N', '-f', configuration]);
  await untilListening(proxy);
  return { port: proxy, child, logFile: `${world.folder}/cache-${proxy}.log` };
}

/** Starts nginx with the adapter. Returns both ports. Names resolve to the world's origin. */
export async function startNginx(
  world: World,
  server: string,
  names: readonly string[],
): Promise<{ gateway: number; adapter: number }> {
  const [gateway, adapter] = [await freePort(), await freePort()];
  const shipped = readFileSync(`${TOOLS}nginx/pagegate.conf`, 'utf8');
  const text = shipped
    .replace('127.0.0.1:9191', `127.0.0.1:${adapter}`)
    .replace('127.0.0.1:3129', `127.0.0.1:${gateway}`)
    .replace('/var/log/nginx/pagegate-error.log', `${world.folder}/server.log`)
    // The origin of a test uses plain HTTP and is found by name without a resolver.
    .replace('https://$host', 'http://$host');
  const upstreams = names.map((name) => `upstream ${name} { server 127.0.0.1:${world.originPort}; }`);
  await runNginx(world, server, { gateway, adapter }, `${upstreams.join(' ')} ${text}`);
  return { gateway, adapter };
}

/** Starts nginx with the adapter as shipped, except for ports and paths, with the test's DNS server. Returns the gateway's port. */
export async function startNginxAsShipped(world: World, server: string, siteCa: string): Promise<number> {
  const [gateway, adapter] = [await freePort(), await freePort()];
  const text = readFileSync(`${TOOLS}nginx/pagegate.conf`, 'utf8')
    .replace('127.0.0.1:9191', `127.0.0.1:${adapter}`)
    .replace('127.0.0.1:3129', `127.0.0.1:${gateway}`)
    .replace('127.0.0.53 valid=30s', '127.0.0.53 valid=1s')
    .replace('/etc/ssl/certs/ca-certificates.crt', siteCa)
    .replace('/var/log/nginx/pagegate-error.log', `${world.folder}/server.log`);
  await runNginx(world, server, { gateway, adapter }, text);
  return gateway;
}

interface NginxPorts {
  readonly gateway: number;
  readonly adapter: number;
}

async function runNginx(world: World, server: string, { gateway, adapter }: NginxPorts, text: string): Promise<void> {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${world.folder}/${name};`,
  );
  const configuration = put(
    world,
    'nginx.conf',
    `daemon off; pid ${world.folder}/nginx.pid; error_log ${world.folder}/error.log; events {}
     http { ${temporary.join(' ')} ${text} }`,
  );
  chmodSync(world.folder, 0o755);
  const args = ['--server', server, '--key-file', world.keyFile, '--timeout-ms', '1000'];
  world.start(NODE, [`${TOOLS}nginx/pagegate-auth.ts`, ...args, '--listen', `127.0.0.1:${adapter}`]);
  world.start('/usr/sbin/nginx', ['-e', `${world.folder}/start.log`, '-c', configuration]);
  await untilListening(adapter);
  await untilListening(gateway);
}

/** Starts the mitmproxy proxy as shipped, with additional arguments. */
export async function startMitmproxy(
  world: World,
  server: string,
  siteCa: string,
  words: readonly string[] = [],
): Promise<Way> {
  const port = await freePort();
  const state = join(world.folder, `state-${port}`);
  const program = `${TOOLS}mitmproxy/pagegate_mitmproxy.py`;
  const fixed = ['--server', server, '--key-file', world.keyFile, '--state', state, '--listen', `127.0.0.1:${port}`];
  world.start('/usr/bin/python3', [
    '-B',
    program,
    ...fixed,
    '--site-ca-file',
    siteCa,
    '--cache-seconds',
    '0',
    ...words,
  ]);
  await untilListening(port, 60);
  return { port, caFile: join(state, 'mitmproxy-ca-cert.pem') };
}
