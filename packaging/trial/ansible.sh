#!/usr/bin/env bash
# Tries packaging/ansible: installs packages in a root file system of Debian 12 or Ubuntu 24.04 that
# has python3 and python3-apt, and configures two proxies and a coordinator there.
#   ansible.sh ROOT PACKAGES
# It needs root, and an ansible-playbook with the collection community.general. ROOT is changed.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(realpath "$1")
packages=$(realpath "$2")

# Mounts end with the script.
if [ -z "${VPFS_TRIAL_INSIDE:-}" ]; then
  VPFS_TRIAL_INSIDE=yes exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$root" "$packages"
fi
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount --rbind /dev "$root/dev"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/script/certificates" "$work/tls" stor0=localhost >/dev/null
cat >"$work/inventory.yml" <<END
trial:
  hosts:
    trial-root:
      ansible_connection: community.general.chroot
      ansible_host: $root
      ansible_python_interpreter: /usr/bin/python3
      trial_folder: $work
      vpfs_package_directory: $packages
END
export ANSIBLE_ROLES_PATH="$here/packaging/ansible/roles" ANSIBLE_HOME="$work/ansible" ANSIBLE_NOCOLOR=1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

die() {
  cat "$work/log" >&2
  echo "not so: $1" >&2
  exit 1
}

# play NAME OPTION...: its recap, or its error
play() {
  ansible-playbook -i "$work/inventory.yml" "$here/packaging/trial/ansible.yml" "${@:2}" >"$work/log" 2>&1
}

# has MODE OWNER PATH
has() {
  local found
  found=$(chroot "$root" stat --format='%a %U:%G' "$3")
  [ "$found" = "$1 $2" ] || die "$3 is $1 $2; it is $found"
}

play first || die "the role installs and configures"
echo "installed and configured"
has 640 root:vpfs /etc/vpfs/proxy-s0.yaml
has 640 root:vpfs /etc/vpfs/coordinator.yaml
has 640 root:vpfs /etc/vpfs/tls/stor0.key
has 644 root:root /etc/vpfs/tls/stor0.pem
for program in vpfs-proxy vpfs-coordinator vpfsctl; do
  chroot "$root" "$program" --version | grep -q "^$program [0-9]" || die "$program is installed"
done
as_vpfs() { chroot "$root" setpriv --reuid=vpfs --regid=vpfs --init-groups "$@" >>"$work/log" 2>&1; }
as_vpfs vpfs-proxy --config /etc/vpfs/proxy-s0.yaml --check-config || die "the user vpfs may use the configuration"
as_vpfs vpfs-proxy --config /etc/vpfs/proxy-s1.yaml --check-config || die "the user vpfs may use the other one"
as_vpfs vpfs-coordinator --config /etc/vpfs/coordinator.yaml --check-config || die "and the coordinator's"
echo "modes are right; the user vpfs may use the configurations"

play second || die "it runs a second time"
grep -q 'changed=0 ' "$work/log" || die "the second time nothing changes"
echo "the second time nothing changes"

before=$(sha256sum "$root/etc/vpfs/proxy-s0.yaml")
! play refused --extra-vars trial_protocol=lustre || die "a mistake in a configuration fails"
grep -q 'proxy.protocol' "$work/log" || die "the mistake is named"
[ "$before" = "$(sha256sum "$root/etc/vpfs/proxy-s0.yaml")" ] || die "the configuration stays"
echo "a mistake is refused by --check-config, and the file stays"

play changed --extra-vars '{"trial_scheduler": {"policy": "fifo"}}' || die "a change is written"
grep -q 'changed=2 ' "$work/log" && die "handlers ran, or one file changed more than once"
grep -q 'policy: fifo' "$root/etc/vpfs/proxy-s1.yaml" || die "the change is in the file"
echo "a change goes into both files"
