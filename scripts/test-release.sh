#!/usr/bin/env bash
# `npm run test:release`: what few changes break, and takes long. It runs before a release, and each night.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

step 'release tests' npx tap --jobs=2 test/release/*.release.ts
# Everything that `.ci/run` tests, with the oldest Node, all looks of the pages, the check of every response, and all
# wrong answers of issuers.
export ANSWERS=all LOOKS=all LANGUAGES=en,ar CHECK_EVERY_RESPONSE=1
step 'all tests on the oldest Node' env TAP_RCFILE=test/all.taprc bash scripts/oldest-node.sh

summarize
