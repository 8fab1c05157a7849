#!/bin/sh
# Installs Debian's Chromium for `make test-console`, where it is missing.
set -eu
[ -x /usr/bin/chromium ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "Chromium is missing, and only root can install it: apt-get install --no-install-recommends chromium" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 update -q
apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends chromium
