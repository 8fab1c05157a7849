/** The program of the console's process. It ends when the primary does. */
import type { AddressInfo } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { HEARTBEAT_MS } from '../platform/watchdog.ts';
import { fileIdentity } from '../server/data-loader.ts';
import { createLog, failureFields, type Log, requestFailureFields } from '../server/log.ts';
import { configuredCertificate } from '../server/read-certificate.ts';
import { Accounts } from './accounts.ts';
import type { ConsoleContext } from './context.ts';
import { DecisionLogs } from './decisions/logs.ts';
import { JobRunner } from './jobs/runner.ts';
import { PacedQueue } from './paced-queue.ts';
import { DoctorReport } from './pages/doctor-report.ts';
import type { FromConsole, ToConsole } from './process/messages.ts';
import { PrimaryLink } from './process/primary-link.ts';
import { createSampleTaker } from './process/sample-taker.ts';
import { ROUTES } from './routes.ts';
import { ShortCache } from './short-cache.ts';
import { ConsoleStore } from './store/store.ts';
import { Judge } from './try-verdict.ts';
import { ADDRESS_FACT, consoleUrl, speaksTls } from './users.ts';
import { allowedNames } from './web/security.ts';
import { createWebServer } from './web/server.ts';
import { SignInLimiter } from './web/sign-in-limiter.ts';

/** Index and policy are opened this long after the start, so that the first page is not delayed. */
const PREPARE_MS = 2_000;
const SAMPLES_EVERY_MS = 15_000;

function tell(message: FromConsole, sent = (): void => {}): void {
  // A primary that is gone is handled by the `disconnect` event.
  if (process.connected) process.send?.(message, undefined, undefined, sent);
}

const primary = new PrimaryLink(tell);
let stop = (): void => process.exit(0);

async function start(config: Config): Promise<void> {
  const log = createLog(config.log.level);
  try {
    await serve(config, log);
  } catch (error) {
    tell({ type: 'failed', failure: failureFields(error) }, () => process.exit(1));
  }
}

async function serve(config: Config, log: Log): Promise<void> {
  const paths = statePaths(config);
  const certificate = speaksTls(config) ? configuredCertificate(config.tls) : undefined;
  const app: ConsoleContext = {
    config,
    paths,
    store: new ConsoleStore(paths.consoleFile),
    accounts: new Accounts(config),
    jobs: new JobRunner(config),
    doctor: new DoctorReport(),
    decisions: new DecisionLogs(paths.logDir),
    judge: new Judge(config),
    proposals: new PacedQueue(LIMITS.consoleProposals.value),
    ask: (question) => primary.ask(question),
    kept: new ShortCache(),
    limits: {
      address: new SignInLimiter(LIMITS.consoleAddressFailures.value),
      name: new SignInLimiter(LIMITS.consoleNameFailures.value),
      present: new SignInLimiter(LIMITS.consoleNameFailures.value),
      own: new SignInLimiter(LIMITS.consoleOwnActions.value),
    },
  };
  let names = allowedNames(config, certificate?.chain);
  const server = createWebServer({
    app,
    routes: ROUTES,
    certificate,
    allowedNames: () => names,
    onFailure: (error) => log('console_request_failed', requestFailureFields(error)),
  });
  const { host, port } = config.console;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const what = `Console address ${host}, port ${port}: ${cause.message}.`;
      reject(new PagegateError('listen_failed', what, { host, port }, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = consoleUrl(config, (server.address() as AddressInfo).port);
  app.store.setFact(ADDRESS_FACT, address);
  const takeSamples = createSampleTaker((samples) => app.store.series.add(samples), app.ask, log);
  void takeSamples();
  setInterval(() => void takeSamples(), SAMPLES_EVERY_MS).unref();
  if (server instanceof TlsServer)
    followCertificate(config, log, (renewed) => {
      names = allowedNames(config, renewed.chain);
      server.setSecureContext({ cert: renewed.chain, key: renewed.key });
    });
  stop = () => {
    app.jobs.stop();
    server.close();
    server.closeAllConnections();
    app.store.close();
    process.exit(0);
  };
  tell({ type: 'listening', address });
  setTimeout(() => app.judge.prepare(), PREPARE_MS).unref();
}

/** Checks for a renewed certificate as often as the server does. */
function followCertificate(
  config: Config,
  log: Log,
  use: (renewed: { readonly chain: string; readonly key: string }) => void,
): void {
  const { certificate_file, key_file } = config.tls;
  if (certificate_file === null) return;
  const identity = (): string => `${fileIdentity(certificate_file)} ${fileIdentity(key_file)}`;
  let known = identity();
  setInterval(() => {
    try {
      const now = identity();
      if (now === known) return;
      known = now;
      const renewed = configuredCertificate(config.tls);
      if (renewed !== undefined) use(renewed);
    } catch (error) {
      log('console_certificate_refused', failureFields(error));
    }
  }, config.server.poll_seconds * 1_000).unref();
}

// The primary decides when the console stops; a Ctrl-C in a terminal reaches the whole process group.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

process.on('uncaughtException', (error) => {
  const log = createLog('error');
  log('console_crashed', requestFailureFields(error));
  process.exit(1);
});
process.on('disconnect', () => stop());
process.on('message', (message: ToConsole) => {
  if (message.type === 'start') void start(message.config);
  else if (message.type === 'answer') primary.onAnswer(message.id, message.answer, message.failure);
  else stop();
});
setInterval(() => tell({ type: 'heartbeat' }), HEARTBEAT_MS);
