#!/usr/bin/env bash
# scripts/oldest-node.sh [FILE…]: runs tests with the oldest Node.js that package.json allows, which npm installs. Without
# files, these are the ones that the configuration of tap (TAP_RCFILE) includes.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").engines.node.replace(">=", "")')
jobs=$(node -p '2 * os.availableParallelism()')
node=$(npm exec --yes --package="node@$version" -- which node)
export PATH="$(dirname "$node"):$PATH"
node --version
exec node node_modules/tap/dist/esm/run.mjs --jobs="$jobs" "$@"
