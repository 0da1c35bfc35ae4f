#!/usr/bin/env bash
# Prints the directory of a new Debian (debootstrap, minbase, with certificates): the root of the
# bare machine (bare.sh) and of the image's base (image.ts). Made once: whole or not there.
set -euo pipefail

suite=${BARE_SUITE:-bookworm}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cache=${BARE_CACHE:-$root/.cache/bare}

if ((EUID != 0)); then
  ! sudo -n true 2>/dev/null || exec sudo -n -E "$0" "$@"
  echo 'debian.sh: needs root, for debootstrap and chroot' >&2
  exit 77
fi
if ! command -v debootstrap >/dev/null; then
  echo 'debian.sh: apt-get install -y debootstrap' >&2
  exit 77
fi

debian=$cache/$suite
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # two tests need it, and may run at the same time
if [[ ! -d $debian ]]; then
  part=$(mktemp -d "$cache/part.XXXXXX")
  chmod 755 "$part" # the root of a machine, which its users enter
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$part" >"$cache/debootstrap.log"
  mv "$part" "$debian"
fi
echo "$debian"
