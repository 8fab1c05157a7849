#!/bin/sh
# systemd and its containers, from Debian's packages.
set -e
if command -v systemd-nspawn >/dev/null && [ -x /lib/systemd/systemd ]; then
  [ "$(id -u)" = 0 ] && exit 0
  echo "make test-systemd starts a container, which only root may. Run it as root." >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "systemd's containers are not installed. Run this target as root, or first: sudo apt-get install systemd systemd-container dbus" >&2
  exit 1
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends systemd systemd-container dbus
