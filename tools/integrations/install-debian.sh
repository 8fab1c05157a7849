#!/bin/sh
# Installs what `make test-integrations` needs from Debian's packages, where it is missing. Services are not started.
set -eu
missing=""
need() { [ -x "$1" ] || missing="$missing $2"; }
# Squid with OpenSSL does what the plain one does, too.
/usr/sbin/squid -v 2>/dev/null | grep -q with-openssl || missing="$missing squid-openssl"
need /usr/sbin/nginx nginx-light
need /usr/bin/mitmdump mitmproxy
need /usr/bin/chromium chromium
need /usr/bin/certutil libnss3-tools
need /usr/bin/openssl openssl
need /usr/bin/curl curl
need /usr/bin/python3 python3
need /sbin/ip iproute2
need /usr/sbin/nft nftables
need /usr/bin/promtool prometheus
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "these packages are missing, and only root can install them: apt-get install --no-install-recommends$missing" >&2
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
apt-get -o DPkg::Lock::Timeout=300 update -q
# shellcheck disable=SC2086 # one word for each package
apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends $missing
