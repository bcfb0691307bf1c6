#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The page and the drawing of octavo plan by other eyes: the style is the one that the page's policy
# allows by its hash, and xmllint and rsvg-convert, where they are, read the drawing.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

die() {
    echo "FAILED: $*" >&2
    exit 1
}

model=$TEST_DATA/models/llama-f32.gguf
"$OCTAVO" plan "$model" --mesh model=2 --format html >"$scratch/page.html"
"$OCTAVO" plan "$model" --mesh model=2 --format svg >"$scratch/plan.svg"

if command -v openssl >/dev/null; then
    allowed=$(sed -n "s/.*style-src 'sha256-\([^']*\)'.*/\1/p" "$scratch/page.html")
    tr -d '\n' <"$scratch/page.html" | sed -e 's/.*<style>//' -e 's/<\/style>.*//' >"$scratch/style"
    actual=$(tr -d '\n' <"$scratch/style" | openssl dgst -sha256 -binary | openssl base64)
    [ "$allowed" = "$actual" ] || die "STYLE_HASH in src/cli/plan_html.c must be $actual"
fi
if command -v xmllint >/dev/null; then
    xmllint --noout --nonet "$scratch/plan.svg" || die "the drawing is no XML"
fi
if command -v rsvg-convert >/dev/null; then
    rsvg-convert -w 800 "$scratch/plan.svg" -o "$scratch/plan.png" || die "the drawing cannot be drawn"
    [ -s "$scratch/plan.png" ] || die "an empty picture"
fi
