#!/usr/bin/env bash
# Installs Chromium from Debian's packages for the browser tests, unless it is installed.
set -euo pipefail
command -v chromium >/dev/null && exit 0
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium >/dev/null
