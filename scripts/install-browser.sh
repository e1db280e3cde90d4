#!/usr/bin/env bash
# Chromium for the tests of the pages, from Debian's packages, where it is not there yet.
set -euo pipefail
command -v chromium >/dev/null && exit 0
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium >/dev/null
