#!/usr/bin/env bash
# `npm run test:release`: what few changes break, and takes long. It runs before a release, and each night.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

step 'release tests' npx tap --jobs=2 test/release/*.release.ts
# Everything that `.ci/run` tests and what it leaves out, with the oldest Node, all looks of the pages, the check of every
# response, and all rows of tables.
export NIGHTLY=1 LOOKS=all LANGUAGES=en,ar
step 'all tests on the oldest Node' env TAP_RCFILE=test/nightly.taprc bash scripts/oldest-node.sh

summarize
