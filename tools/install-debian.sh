#!/bin/sh
# Installs the Debian packages of missing programs if run by root; otherwise prints what to do. Does not start services.
# Each argument is PROGRAM=PACKAGE. PROGRAM is a path, or a pattern; one match is enough.
set -eu
missing=""
for pair in "$@"; do
  # shellcheck disable=SC2086 # a pattern
  ls -d ${pair%%=*} >/dev/null 2>&1 || missing="$missing ${pair#*=}"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "These Debian packages are missing, and this is no Debian: install what they hold:$missing" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "These packages are missing, and only root can install them: apt-get install --no-install-recommends$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# A policy that forbids starting services prevents the packages from running them beside the tests.
policy=/usr/sbin/policy-rc.d
made=""
trap '[ -z "$made" ] || rm -f "$policy"' EXIT
trap 'exit 130' INT TERM HUP
if [ ! -e "$policy" ]; then
  made=yes
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
# Waits if another program is installing packages now.
apt-get -o DPkg::Lock::Timeout=300 update -q
# shellcheck disable=SC2086 # one word for each package
apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends $missing
