/** State notifications to systemd for a service of `Type=notify`. Without systemd nothing is sent. */
import { sendDatagram } from '../platform/sockets.ts';
import type { Log } from './log.ts';

/**
 * Sends a state such as `READY=1`, as sd_notify(3) does. The C library sends the datagram, because Node has no Unix datagram sockets. The
 * program `systemd-notify` is no alternative: it is another process, and systemd accepts its messages only if the unit permits that.
 */
export function notifySystemd(log: Log, state: Readonly<Record<string, string | number>>): void {
  const path = process.env['NOTIFY_SOCKET'];
  if (path === undefined || path === '') return;
  const lines = Object.entries(state).map(([name, value]) => `${name}=${value}`);
  const errno = sendDatagram(path, lines.join('\n'));
  if (errno !== 0) log('notify_failed', { errno });
}
