#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Our own tree has no include in a wrong direction; and the checker sees each kind of wrong include.
. "$(dirname "$0")/lib.sh"
check=$SOURCE/tools/check_includes

"$check" "$SOURCE"

# A tree in which every layer has one header and nothing is wrong.
good=$scratch/good
mkdir -p "$good/include/octavo"
echo '#include <stdint.h>' >"$good/include/octavo/status.h"
for layer in base kernels attention cache sharding formats text program model engine server cli; do
    mkdir -p "$good/src/$layer"
    echo '#include "octavo/status.h"' >"$good/src/$layer/$layer.h"
    printf '#include "%s/%s.h"\n#include "base/base.h"\n#include <string.h>\n' $layer $layer \
        >"$good/src/$layer/$layer.c"
done
printf '#include "cache/cache.h"\n#include "text/text.h"\n' >"$good/src/program/join.c"
printf '#include "program/program.h"\n' >"$good/src/engine/far.c"
"$check" "$good" >/dev/null || die "a right tree is refused"

# refuse FILE LINE REASON: the good tree with one line added to one file.
refuse() {
    bad=$scratch/bad
    rm -rf "$bad"
    cp -R "$good" "$bad"
    printf '%s\n' "$2" >>"$bad/$1"
    rejects "$check" "$bad" "$3"
}

refuse src/base/base.c '#include "kernels/kernels.h"' 'base may not include kernels'
refuse src/kernels/kernels.c '  #  include "attention/attention.h"' 'kernels may not include attention'
refuse src/attention/attention.c '#include "cache/cache.h"' 'attention may not include cache'
refuse src/cache/cache.h '#include "attention/attention.h"' 'cache may not include attention'
refuse src/text/text.c '#include "formats/formats.h"' 'text may not include formats'
refuse src/sharding/sharding.c '#include "program/program.h"' 'sharding may not include program'
refuse src/model/model.c '#include "engine/engine.h"' 'model may not include engine'
refuse src/cli/cli.c '#include "engine/engine.h"' 'cli may not include engine'
refuse src/server/server.c '#include "model/model.h"' 'server may not include model'
refuse src/cli/cli.c '#include "server/server.h"' 'cli may not include server'
refuse include/octavo/status.h '#include "base/base.h"' 'octavo may not include base'
refuse include/octavo/status.h '#include <string.h>' 'may not include <string.h>'
refuse src/base/base.c '#include <octavo/status.h>' 'quotes for our own headers'
refuse src/base/base.c '#include "base.h"' 'no src/base.h'
refuse src/text/text.c '#include "text/text.c"' 'includes a source file'
refuse src/text/text.c '#include TEXT_HEADER' 'by macro'
refuse src/base/base.h '#include "base/base.h"' 'include cycle: src/base/base.h -> src/base/base.h'

cp -R "$good" "$scratch/cycle"
echo '#include "model/b.h"' >"$scratch/cycle/src/model/a.h"
echo '#include "model/c.h"' >"$scratch/cycle/src/model/b.h"
echo '#include "model/a.h"' >"$scratch/cycle/src/model/c.h"
rejects "$check" "$scratch/cycle" 'include cycle: src/model/a.h -> src/model/b.h -> src/model/c.h -> src/model/a.h'
