#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Our shell scripts parse, and shellcheck has nothing to say about them.
. "$(dirname "$0")/lib.sh"
cd "$SOURCE"
sh -n dev
for script in tools/* tests/house/*.sh; do
    if head -n 1 "$script" | grep -q '^#!/bin/sh'; then sh -n "$script"; fi
done
command -v shellcheck >/dev/null || skip "no shellcheck; syntax is right"
shellcheck -x -P tests/house dev .ci/run tools/check_* tests/house/test_*.sh completions/octavo.bash
