#!/bin/sh
# Runs a command in a separate network that has only loopback, with a few public addresses for the sites of a test and a few internal ones
# that must never be reached. Names are resolved at 127.0.0.53. Real programs run there as shipped, on real ports, and nothing leaves the
# machine. If such a network is not possible, the command runs without it and reports the tests that it skips.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
if [ "${1:-}" = --inside ]; then
  shift
  ip link set lo up
  for address in 93.184.215.14/32 93.184.215.15/32 2606:2800:21f::1/128 10.0.0.5/32 169.254.169.254/32 fd00::5/128; do
    ip address add "$address" dev lo
  done
  mount --bind "$folder/resolv.conf" /etc/resolv.conf
  PAGEGATE_TEST_NETWORK=yes exec "$@"
fi
if [ "$(id -u)" -eq 0 ] && unshare --net --mount true 2>/dev/null; then
  exec unshare --net --mount --propagation private "$0" --inside "$@"
fi
echo "no separate network for these tests (it needs root): those that need one are skipped" >&2
exec "$@"
