#!/usr/bin/env bash
# Runs every fuzz target of the module for a short time each.
#   test/fuzz.sh 2s
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-2s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$dir"/*_test.go | sort -u | while read -r target; do
		echo "fuzz $dir $target"
		"${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1s "$dir" >/tmp/daybook-fuzz.$$ 2>&1 || {
			cat /tmp/daybook-fuzz.$$
			exit 1
		}
	done
done
rm -f /tmp/daybook-fuzz.$$
