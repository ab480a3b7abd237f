#!/bin/sh
# Brings the two Debian tools that tests hold pages and metrics against: mandoc and promtool (package prometheus).
# Without root or apt it says so and changes nothing; the tests that need them then skip with the reason.
set -eu
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "make test: mandoc or promtool is missing and cannot be installed without root: their tests will be skipped" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# No daemon is wanted, only promtool: policy-rc.d keeps the package from starting one.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
apt-get install -y -qq --no-install-recommends mandoc prometheus >/dev/null
