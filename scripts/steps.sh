# For `.ci/run` and scripts/test-release.sh, which source this file: runs commands as named steps, and counts those that fail.
# Only failures are printed, with their causes, so that they are not lost among thousands of lines.
export TAP_REPORTER=terse
# Recording coverage takes time, and nobody looks at it here.
export _TAPJS_PROCESSINFO_COVERAGE_=0

passed=0
failed=0

# step NAME COMMAND [ARGUMENT…]
step () {
  local name=$1 began=$SECONDS
  echo "== $name"
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $*"; fi
  echo "== $name: $((SECONDS - began)) s"
}

# Prints how many steps passed and failed. Fails if one did.
summarize () {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
