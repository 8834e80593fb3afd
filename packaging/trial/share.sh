#!/usr/bin/env bash
# Runs in a root file system where the packages are installed, in name spaces of its own with nothing
# but the loopback: two servers, a proxy in front of each as its unit would run it, and two
# applications. Prints `ratio R`, what the first got of the second's bytes.
#   share.sh             once
#   share.sh NEXT.deb... also installs these while the proxies run, hands over to them, and again
set -euo pipefail

systemd-tmpfiles --create vpfs-common.conf # /run is new, as after a boot
work=$(mktemp -d)
cd "$work"
examples=/usr/share/doc/vpfs/examples
cp $examples/server.yaml $examples/load.yaml .
sed -i 's/^duration: .*/duration: 4 s/' load.yaml
for name in s0 s1; do
  sed -e "s,status_file: .*,status_file: /var/lib/vpfs/$name.json\n  log: /var/log/vpfs/$name.log," \
    -e "s,^control: .*,control: {socket: /run/vpfs/$name.sock\, name: $name}," \
    $examples/proxy-$name.yaml >/etc/vpfs/proxy-$name.yaml
done

# start LOG COMMAND...: until it says that it is ready.
start() {
  local log=$1 i
  shift
  "$@" >"$log" 2>&1 &
  for ((i = 0; i < 200; i++)); do
    if grep -q 'ready' "$log"; then return; fi
    sleep 0.05
  done
  cat "$log" >&2
  echo "not ready: $*" >&2
  exit 1
}

measure() {
  vpfs-load --config load.yaml --file-system tcp-px://127.0.0.1:4334/vpfs --no-live >load.log 2>&1 || {
    cat load.log >&2
    exit 1
  }
  awk '$1 == "simulation" { one = $2 } $1 == "analysis" { other = $2 }
    END { printf "ratio %.3f\n", one / other }' load.log
}

as_vpfs() {
  # As the unit has it: the user, and no capability.
  setpriv --reuid=vpfs --regid=vpfs --init-groups --no-new-privs --bounding-set=-all "$@"
}

start server0.log vpfs-server --config server.yaml --server s0
start server1.log vpfs-server --config server.yaml --server s1
start proxy0.log as_vpfs vpfs-proxy --config /etc/vpfs/proxy-s0.yaml
start proxy1.log as_vpfs vpfs-proxy --config /etc/vpfs/proxy-s1.yaml
date +'shared %s.%N'
measure
vpfsctl --proxy /run/vpfs/s0.sock status >/dev/null

if [ $# -gt 0 ]; then
  before=$(vpfs-proxy --version)
  dpkg --install "$@" >dpkg.log 2>&1 || { cat dpkg.log >&2; exit 1; }
  measure # the proxies run on
  for name in s0 s1; do
    vpfsctl --proxy /run/vpfs/$name.sock upgrade
  done
  measure
  echo "upgraded from $before"
fi
