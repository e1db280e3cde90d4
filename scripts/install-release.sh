#!/usr/bin/env bash
# Installs the programs that the release tests need (nginx, PgBouncer, Redis, PostgreSQL, Prometheus, libfaketime,
# systemd, Python, oathtool, Glewlwyd, Patroni, etcd, HAProxy, ClamAV and Ceph's radosgw) from Debian's packages, if they are missing.
set -euo pipefail
missing=()
[ -x /usr/sbin/nginx ] || missing+=(nginx-light)
[ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
[ -x /usr/bin/redis-server ] || missing+=(redis-server)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
[ -x /usr/bin/prometheus ] || missing+=(prometheus)
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(libfaketime)
[ -x /usr/bin/systemd-analyze ] || missing+=(systemd)
[ -x /usr/bin/oathtool ] || missing+=(oathtool)
[ -x /usr/bin/glewlwyd ] || missing+=(glewlwyd)
[ -x /usr/bin/radosgw ] || missing+=(ceph-mon ceph-osd ceph-common radosgw)
[ -x /usr/sbin/clamd ] || missing+=(clamav-daemon)
[ -x /usr/bin/patroni ] || missing+=(patroni)
[ -x /usr/bin/etcd ] || missing+=(etcd-server)
[ -x /usr/sbin/haproxy ] || missing+=(haproxy)
command -v python3 >/dev/null || missing+=(python3)
[ "${#missing[@]}" -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "The release tests need ${missing[*]}: install them, or run this script as root on Debian." >&2
  exit 1
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
