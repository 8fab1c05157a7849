#!/bin/sh
# Copies the ledger, while it is in use, to a new file in a folder, and keeps the newest few of these copies.
#
#   backup.sh FOLDER KEEP [CONFIG]
#
# The copies are named ledger-20300131T023000Z.sqlite, by the time in UTC; nothing else in the folder is touched. Old ones are removed
# only after the new one is whole and on the disk: where the copy fails, the exit code is the command's and all that was there stays.
set -eu
export LC_ALL=C
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: $0 FOLDER KEEP [CONFIG]" >&2; exit 2; }
folder=$1
keep=$2
config=${3-}
case $keep in
'' | *[!0-9]* | 0*) echo "$0: KEEP is the number of copies to keep, from 1; got \"$keep\"" >&2; exit 2 ;;
esac
[ -d "$folder" ] || { echo "$0: $folder is not a folder; make it, owned by the user of the server, mode 0700" >&2; exit 2; }
# A link to this script may lie anywhere.
program=$(dirname "$(readlink -f "$0")")/../../src/pagegate
umask 077

# What a copy that was killed left behind. Nobody writes here but this script, of which systemd runs one at a time.
rm -f "$folder"/ledger-????????T??????Z.sqlite.*.tmp

copy=$folder/ledger-$(date -u +%Y%m%dT%H%M%SZ).sqlite
"$program" account backup "$copy" ${3+--config "$config"}

set -- "$folder"/ledger-????????T??????Z.sqlite
surplus=$(($# - keep))
for old in "$@"; do
  [ "$surplus" -gt 0 ] || break
  # After the clock was set back, the newest copy need not have the latest name.
  [ "$old" != "$copy" ] || continue
  rm -f "$old"
  surplus=$((surplus - 1))
done
