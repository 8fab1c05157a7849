#!/bin/sh
# Runs a command in a network of its own, where loopback is all there is: it holds a few public addresses, for sites of a test, and a few
# inside ones that nothing must reach, and names are asked for at 127.0.0.53. So real programs run as shipped, on real ports, and nothing
# leaves the machine. Where that cannot be had the command runs all the same, and says which of its tests it skips.
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
echo "no network of its own for these tests (that takes root): those that need one are skipped" >&2
exec "$@"
