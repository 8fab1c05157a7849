#!/bin/sh
# Installs what `make test-integrations` needs from Debian's packages, where it is missing. Services are not started.
set -eu
missing=""
[ -x /usr/sbin/squid ] || missing="$missing squid"
[ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
[ -x /usr/bin/chromium ] || missing="$missing chromium"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "these packages are missing, and only root can install them:$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# A policy that forbids starting keeps the packages from running services beside the tests.
policy=/usr/sbin/policy-rc.d
made=""
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  made=yes
fi
trap '[ -z "$made" ] || rm -f "$policy"' EXIT
apt-get update -q
# shellcheck disable=SC2086 # one word for each package
apt-get install -y -q --no-install-recommends $missing
