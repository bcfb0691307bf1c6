#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# clang-format has nothing to change. Other versions than the one CI uses lay out differently.
. "$(dirname "$0")/lib.sh"
command -v clang-format >/dev/null || skip "no clang-format"
version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
[ "$version" = 14 ] || skip "clang-format $version; the layout is checked with version 14"
"$SOURCE/dev" format --check
