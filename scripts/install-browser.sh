#!/usr/bin/env bash
# Installs Chromium from Debian's packages for the browser tests, unless it is installed, and a small font for Chinese
# and Japanese, without which pictures of pages have boxes in place of these letters.
set -euo pipefail
command -v chromium >/dev/null && [ -e /usr/share/fonts/truetype/wqy ] && exit 0
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-wqy-microhei >/dev/null
