/** `pagegate serve`: runs the server until it is stopped. */
import type { Command } from 'commander';
import type { RunningServer, ServerProgram } from '../server/server.ts';
import { addConfigOptions, type ConfigFlags } from './shared/config-options.ts';
import { printLine, sentence } from './shared/output.ts';
import { stopAtFirst } from './shared/stop-signals.ts';
import { tolerateLostOutput } from './shared/streams.ts';

interface ServeFlags extends ConfigFlags {
  readonly host?: string;
  readonly port?: string;
  readonly workers?: string;
  readonly index?: string;
  readonly adminPort?: string;
  readonly burstExempt?: readonly string[];
  readonly trustedProxy?: readonly string[];
  readonly plainHttpAnywhere?: boolean;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly profile?: string;
  readonly policy?: string;
  readonly decisionLog?: boolean;
  readonly warm?: boolean;
}

const list = (value: string, earlier: readonly string[] = []): readonly string[] => [...earlier, value];

export function registerServe(program: Command): void {
  const command = program
    .command('serve')
    .description('answer lookups over HTTP until stopped; options override the configuration');
  addConfigOptions(command)
    .option('--host <address>', 'address to listen on')
    .option('--port <port>', 'port to listen on (0: any free one)')
    .option('--workers <n|auto>', 'worker processes that share the port')
    .option('--index <file>', 'one index file instead of the current generation')
    .option('--admin-port <port>', 'port of health, metrics and status')
    .option(
      '--burst-exempt <cidr>',
      'network without a burst limit, such as a gateway for many agents (repeatable)',
      list,
    )
    .option('--trusted-proxy <cidr>', 'proxy whose X-Forwarded-For counts (repeatable)', list)
    .option('--tls-certificate <file>', 'certificate chain in PEM')
    .option('--tls-key <file>', 'its private key in PEM')
    .option('--plain-http-anywhere', 'serve without TLS beyond loopback: API keys cross the network unencrypted')
    .option('--profile <strict|default|open>', 'verdict for reads of unclassified destinations')
    .option('--policy <file>', 'your own policy file')
    .option('--decision-log', 'write one line for each verdict')
    .option('--warm', 'read the whole index into memory first, in huge pages if the kernel has them')
    .addHelpText('after', '\nExample:\n  $ pagegate serve --port 8080 --workers auto --burst-exempt 10.1.2.3')
    .action(serve);
}

/** Returns the settings of the flags, nested as in the configuration file. Flags that are not given are left out. */
function overrides(flags: ServeFlags): Record<string, unknown> {
  const number = (text: string | undefined): unknown =>
    text !== undefined && /^\d+$/.test(text) ? Number(text) : text;
  const sections: Record<string, Record<string, unknown>> = {
    server: {
      host: flags.host,
      port: number(flags.port),
      workers: number(flags.workers),
      plain_http_anywhere: flags.plainHttpAnywhere,
    },
    index: { path: flags.index, warm: flags.warm },
    admin: { port: number(flags.adminPort) },
    burst: { exempt: flags.burstExempt, trusted_proxies: flags.trustedProxy },
    tls: { certificate_file: flags.tlsCertificate, key_file: flags.tlsKey },
    policy: { profile: flags.profile, file: flags.policy },
    decision_log: { enabled: flags.decisionLog },
  };
  const tree: Record<string, unknown> = flags.stateDir === undefined ? {} : { state_dir: flags.stateDir };
  for (const [section, settings] of Object.entries(sections)) {
    const set = Object.entries(settings).filter(([, value]) => value !== undefined);
    if (set.length > 0) tree[section] = Object.fromEntries(set);
  }
  return tree;
}

/** Returns how this program was started. A later version may be installed at that path by now. */
function thisProgram(): ServerProgram {
  const [, script = '', ...args] = process.argv;
  const command = process.env['PAGEGATE_PROGRAM'];
  if (command !== undefined) return { command, args };
  return { command: process.execPath, args: [...process.execArgv, script, ...args] };
}

async function serve(flags: ServeFlags): Promise<void> {
  // A server continues when the terminal or pipe that it was started on is gone.
  tolerateLostOutput();
  let running: RunningServer | undefined;
  let reloads = 0;
  // Listen from the beginning: without a listener the signal ends the process.
  process.on('SIGHUP', () => {
    reloads += 1;
    void running?.reload();
  });
  const { loadConfig } = await import('../config/config.ts');
  const { createLog } = await import('../server/log.ts');
  const { findPredecessor, startServer } = await import('../server/server.ts');
  const { checkConsole, ConsoleProcess, WarningLog } = await import('../console/start.ts');
  const predecessor = findPredecessor();
  let isStopping = false;
  const stop = stopAtFirst(() => {
    isStopping = true;
    // If the signal comes during the start, the server stops as soon as it has started.
    void running?.stop();
  });
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  const start = async () => {
    const config = loadConfig({ file: flags.config, flags: overrides(flags) });
    checkConsole(config);
    const { log, warnings } = new WarningLog(createLog(config.log.level));
    return { server: await startServer(config, { log, predecessor, program: thisProgram() }), config, log, warnings };
  };
  const started = await start().catch(async (error: unknown) => {
    await predecessor?.fail(error);
    // Ctrl-C and a stop by systemd reach every process. One that has only begun dies of the signal, and so fails the start.
    if (isStopping) return undefined;
    throw error;
  });
  if (started === undefined) return;
  const { server, config, log, warnings } = started;
  running = server;
  if (isStopping) return server.stop();
  // A reload was requested during the start, which may have read the files before that.
  if (reloads > 0) void server.reload();
  const status = await server.status();
  printLine(`pagegate serves ${status.address}/api/check (pid ${process.pid}); Ctrl-C stops it.`);
  if (server.adminUrl !== undefined) printLine(`Health, metrics, status: ${server.adminUrl}`);
  for (const warning of status.warnings) printLine(`Warning: ${sentence(warning)}`);
  for (const reason of status.reasons) printLine(`Not ready: ${sentence(reason)} See the log.`);
  const parts = { config, server, log, warnings };
  const pages = server.inPlace.then(() => (config.console.enabled ? new ConsoleProcess(parts) : undefined));
  void pages.then((console) => console?.listening.then((address) => printLine(`Console: ${address}`)));
  await server.leaving;
  void pages.then((console) => console?.stop());
  await server.stopped;
}
