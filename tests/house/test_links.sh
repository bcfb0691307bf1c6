#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Links in our pages lead somewhere, the checker sees those that do not, and manual pages are well-formed.
. "$(dirname "$0")/lib.sh"
check=$SOURCE/tools/check_links

"$check" "$SOURCE"

good=$scratch/good
mkdir -p "$good/docs"
# shellcheck disable=SC2016 # backquotes of Markdown
printf '# A page\n\n## Two words\n[b](docs/b.md#here) [out](https://example.org/x) [self](#two-words)\n```\n[code](nowhere)\n```\n' \
    >"$good/a.md"
# shellcheck disable=SC2016
printf '# Here\n[up](../a.md) `[code](nowhere)`\n' >"$good/docs/b.md"
"$check" "$good" >/dev/null || die "right links are refused"
for link in '[x](c.md)' '![x](docs/x.svg)' '[x](docs/b.md#there)' '[x](#three)' '<img src="x.png">'; do
    rm -rf "$scratch/bad"
    cp -R "$good" "$scratch/bad"
    echo "$link" >>"$scratch/bad/a.md"
    rejects "$check" "$scratch/bad" 'a.md:8: no '
done

command -v mandoc >/dev/null || skip "no mandoc; links are right"
for page in "$SOURCE"/docs/man/*.1; do
    mandoc -T lint -W warning "$page" || die "$page"
done
