/** Loaded into the processes of a server with `--import`. SIGUSR2 starts a CPU profile; the next one writes it to a file in PROFILE_DIR. */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';

/** Sampling interval, in microseconds. */
const INTERVAL_US = 250;

let session: Session | undefined;

function begin(): Session {
  const begun = new Session();
  begun.connect();
  begun.post('Profiler.enable');
  begun.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  begun.post('Profiler.start');
  return begun;
}

function end(ended: Session): void {
  ended.post('Profiler.stop', (error, result) => {
    if (error !== null) throw error;
    const file = join(process.env['PROFILE_DIR'] ?? '.', `${process.pid}.cpuprofile`);
    writeFileSync(file, JSON.stringify(result.profile));
  });
  ended.disconnect();
}

process.on('SIGUSR2', () => {
  if (session === undefined) {
    session = begin();
    return;
  }
  end(session);
  session = undefined;
});
