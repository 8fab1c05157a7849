/** Starts Debian's Squid and nginx with the shipped configurations, changed only where a test on loopback must. */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, readFileSync } from 'node:fs';
import { freePort } from '../../tools/free-port.ts';
import { NODE, put, TOOLS, untilListening, type World } from './world.ts';

/** Squid with its helper; returns the port. Names are found at an address of loopback. */
export async function startSquid(
  world: World,
  server: string,
  hosts: Record<string, string>,
  allowInside = true,
): Promise<number> {
  const proxy = await freePort();
  const lines = Object.entries(hosts).map(([name, address]) => `${address} ${name}\n`);
  const hostsFile = put(world, 'hosts', lines.join(''));
  const shipped = readFileSync(`${TOOLS}squid/squid.conf`, 'utf8');
  const text = shipped
    .replace('127.0.0.1:3128', `127.0.0.1:${proxy}`)
    .replace('/opt/pagegate/node_modules/.bin/node', NODE)
    .replace('/opt/pagegate/tools/integrations/', TOOLS)
    .replace('https://127.0.0.1:8443', `${server} --timeout-ms 1000`)
    .replace('/etc/squid/pagegate.key', world.keyFile)
    .replace('ttl=60', 'ttl=0')
    // The origin of a test is on loopback, where the shipped file lets nobody go.
    .replace('http_access deny to_inside\n', allowInside ? '' : 'http_access deny to_inside\n');
  const rest = [
    `pid_filename ${world.folder}/squid.pid`,
    `cache_log ${world.folder}/cache.log`,
    `coredump_dir ${world.folder}`,
    `hosts_file ${hostsFile}`,
    'dns_nameservers 127.0.0.1',
    'pinger_enable off',
    'netdb_filename none',
    'shutdown_lifetime 0 seconds',
    'visible_hostname test',
  ];
  const configuration = put(world, 'squid.conf', `${text}\n${rest.join('\n')}\n`);
  if (process.getuid?.() === 0) {
    // Squid gives up root for "proxy", which must write its logs and read the key.
    const id = (flag: string) => Number(execFileSync('id', [flag, 'proxy'], { encoding: 'utf8' }));
    chownSync(world.folder, id('-u'), id('-g'));
    chownSync(world.keyFile, id('-u'), id('-g'));
  }
  chmodSync(world.folder, 0o755);
  execFileSync('/usr/sbin/squid', ['-k', 'parse', '-f', configuration], { stdio: 'pipe' });
  world.start('/usr/sbin/squid', ['-N', '-f', configuration]);
  await untilListening(proxy);
  return proxy;
}

/** nginx with the adapter; returns both ports. Names lead to the world's origin. */
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
    // The origin of a test speaks plain HTTP and is found by name without a resolver.
    .replace('https://$host', 'http://$host');
  const upstreams = names.map((name) => `upstream ${name} { server 127.0.0.1:${world.originPort}; }`);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${world.folder}/${name};`,
  );
  const configuration = put(
    world,
    'nginx.conf',
    `daemon off; pid ${world.folder}/nginx.pid; error_log ${world.folder}/error.log; events {}
     http { ${temporary.join(' ')} ${upstreams.join(' ')} ${text} }`,
  );
  chmodSync(world.folder, 0o755);
  const args = ['--server', server, '--key-file', world.keyFile, '--timeout-ms', '1000'];
  world.start(NODE, [`${TOOLS}nginx/pagegate-auth.ts`, ...args, '--listen', `127.0.0.1:${adapter}`]);
  world.start('/usr/sbin/nginx', ['-e', `${world.folder}/start.log`, '-c', configuration]);
  await untilListening(adapter);
  await untilListening(gateway);
  return { gateway, adapter };
}
