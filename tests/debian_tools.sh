#!/bin/sh
# Brings the Debian packages that `make test` lacks: python3-venv where no environment can be made yet, the two tools
# that tests hold pages and metrics against, mandoc and promtool (package prometheus), faketime, which moves clocks, and
# the two fronts that framing is tried through, nginx and haproxy.
# Without root or apt it says so and changes nothing; tests that need a tool then skip with the reason, or do without.
set -eu
missing=""
if [ ! -e "${VENV:-.venv}/.installed-run" ]; then
  "${PYTHON:-python3}" -c 'from ensurepip import version' 2>/dev/null || missing="$missing python3-venv"
fi
command -v mandoc >/dev/null || missing="$missing mandoc"
command -v promtool >/dev/null || missing="$missing prometheus"
command -v faketime >/dev/null || missing="$missing faketime"
# Their homes are not on everybody's path.
[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || missing="$missing nginx-light"
[ -x /usr/sbin/haproxy ] || command -v haproxy >/dev/null || missing="$missing haproxy"
if [ -z "$missing" ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "make test: missing, and not installed without root and apt:$missing; tests of missing tools are skipped" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# No daemon is wanted, only programs: policy-rc.d keeps the packages from starting one.
policy="${POLICY_RC_D:-/usr/sbin/policy-rc.d}"
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
# shellcheck disable=SC2086 # one word a package
apt-get install -y -qq --no-install-recommends $missing >/dev/null
