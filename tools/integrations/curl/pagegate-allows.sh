#!/bin/sh
# Asks pagegate whether a URL may be fetched: exit code 0 for a verdict of allow, 1 for any other and for none.
#
#   pagegate-allows.sh URL [METHOD]
#
# PAGEGATE_SERVER    where it listens (default https://127.0.0.1:8443)
# PAGEGATE_HEADER    a file with the line "X-API-Key: pg_…", mode 0600, so that the key is in no process list
# PAGEGATE_CA        certificates to trust instead of the system's, PEM
set -eu
server=${PAGEGATE_SERVER:-https://127.0.0.1:8443}
header=${PAGEGATE_HEADER:-/etc/pagegate/key.header}
[ $# -ge 1 ] || { echo "usage: $0 URL [METHOD]" >&2; exit 1; }
# Without its value: it may be the key itself, given by mistake.
[ -r "$header" ] || { echo "$0: the file that PAGEGATE_HEADER names (else /etc/pagegate/key.header) cannot be read; it has the line X-API-Key: pg_…" >&2; exit 1; }
# No ~/.curlrc and no proxy of the environment: either would be given the API key, and its answer would be the verdict.
answer=$(curl -q --noproxy '*' --silent --show-error --fail --max-time 2 --proto =http,https --max-filesize 1048576 \
  --write-out '\n%{http_code}' ${PAGEGATE_CA:+--cacert "$PAGEGATE_CA"} --header "@$header" --get \
  --data-urlencode "url=$1" --data-urlencode "method=${2:-GET}" "$server/api/check") || exit 1
# Inside a JSON string every quotation mark is escaped, so these characters are the field itself. The status comes last: curl fails from 400 on.
case $answer in
*'"verdict":"allow"'*'
200') exit 0 ;;
*) printf '%s\n' "$answer" >&2; exit 1 ;;
esac
