/** What systemd wants to know of a service of `Type=notify`; without systemd nothing is said. */
import { sendDatagram } from '../platform/sockets.ts';
import type { Log } from './log.ts';

/**
 * Sends a state as sd_notify(3) does, such as `READY=1`. Node has no datagrams between processes, and the program `systemd-notify` speaks as a
 * process of its own, which systemd believes only where the unit lets it: so the datagram is sent by the C library.
 */
export function notifySystemd(log: Log, state: Readonly<Record<string, string | number>>): void {
  const path = process.env['NOTIFY_SOCKET'];
  if (path === undefined || path === '') return;
  const lines = Object.entries(state).map(([name, value]) => `${name}=${value}`);
  const errno = sendDatagram(path, lines.join('\n'));
  if (errno !== 0) log('notify_failed', { errno });
}
