#!/usr/bin/env bash
# Starts and stops an S3 for tests on this machine: Ceph's radosgw, over a monitor and an OSD that keeps its objects in memory. Needs
# Debian's packages ceph-mon, ceph-osd, ceph-common and radosgw (scripts/install-release.sh). All state is in FOLDER, which must be new.
# Usage: radosgw.sh start FOLDER [PORT]   prints the settings of Usher, without S3_BUCKET. The port and the 100 after it are used.
#        radosgw.sh stop FOLDER
set -euo pipefail
action=${1:?start or stop}
folder=$(realpath -m "${2:?a folder}")

stop() {
  for name in rgw osd mon; do
    [ -f "$folder/$name.pid" ] && kill -9 "$(cat "$folder/$name.pid")" 2>/dev/null || true
    rm -f "$folder/$name.pid"
  done
}

run() { # NAME COMMAND…: runs a server in the background.
  local name=$1
  shift
  "$@" >"$folder/$name.log" 2>&1 </dev/null &
  echo $! >"$folder/$name.pid"
}

until_true() { # SECONDS COMMAND…: repeats a command until it succeeds.
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { echo "radosgw.sh: '$*' did not succeed, see $folder" >&2; stop; exit 1; }
    sleep 0.3
  done
}

if [ "$action" = stop ]; then
  stop
  exit 0
fi
port=${3:-27480}
mkdir -p "$folder"/{mon,osd,rgw}
export CEPH_CONF=$folder/ceph.conf
fsid=$(cat /proc/sys/kernel/random/uuid)
cat >"$CEPH_CONF" <<CONF
[global]
fsid = $fsid
keyring = $folder/keyring
mon host = v2:127.0.0.1:$((port + 1))
mon initial members = a
public addr = 127.0.0.1
ms bind ipv6 = false
ms bind port min = $((port + 10))
ms bind port max = $((port + 100))
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
mon data avail warn = 2
mon max pg per osd = 10000
osd max pg per osd hard ratio = 1000
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 6442450944
run dir = $folder
admin socket = $folder/\$name.asok
log file = $folder/\$name.ceph.log
mon data = $folder/mon
osd data = $folder/osd
rgw data = $folder/rgw
rgw enable usage log = false
rgw run sync thread = false
CONF
all='allow *'
ceph-authtool --create-keyring "$folder/keyring" --gen-key -n mon. --cap mon "$all" >/dev/null
ceph-authtool "$folder/keyring" --gen-key -n client.admin --cap mon "$all" --cap osd "$all" --cap mgr "$all" >/dev/null
ceph-authtool "$folder/keyring" --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd "$all" >/dev/null
monmaptool --create --clobber --addv a "[v2:127.0.0.1:$((port + 1))]" --fsid "$fsid" "$folder/monmap" >/dev/null
ceph-mon --mkfs -i a --monmap "$folder/monmap" --keyring "$folder/keyring" >/dev/null 2>&1
run mon ceph-mon -i a -f
until_true 60 timeout 10 ceph mon stat
uuid=$(cat /proc/sys/kernel/random/uuid)
timeout 30 ceph osd new "$uuid" >/dev/null 2>&1
cp "$folder/keyring" "$folder/osd/keyring"
ceph-osd -i 0 --mkfs --osd-uuid "$uuid" >/dev/null 2>&1
run osd ceph-osd -i 0 -f
timeout 30 ceph osd crush add osd.0 1.0 root=default host=localhost >/dev/null 2>&1
until_true 60 bash -c "timeout 10 ceph osd stat 2>/dev/null | grep -q '1 up'"
run rgw radosgw -n client.admin -f --rgw-frontends "beast endpoint=127.0.0.1:$port"
until_true 120 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
timeout 60 radosgw-admin -n client.admin user create --uid=usher --display-name=usher --access-key=USHERKEY \
  --secret=ushersecret0123456789 >/dev/null 2>&1
echo "S3_ENDPOINT=http://127.0.0.1:$port S3_REGION=us-east-1 S3_ACCESS_KEY_ID=USHERKEY S3_SECRET_ACCESS_KEY=ushersecret0123456789"
