#!/bin/bash -eu
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the fuzz targets into $OUT, each with its seeds and dictionary. The canary stays out: it is meant to crash.
cd "$SRC/sisdiff"
cargo fuzz build -O
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    [ "$target" != canary ] || continue
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    # `pair` plays the same cases as `wakeup`.
    for seeds in "fuzz/seeds/$target" fuzz/seeds/wakeup; do
        if [ -d "$seeds" ] && [ ! -e "$OUT/${target}_seed_corpus.zip" ]; then
            case $target:$seeds in
                wakeup:*|pair:*|*:"fuzz/seeds/$target") zip -q -j "$OUT/${target}_seed_corpus.zip" "$seeds"/* ;;
            esac
        fi
    done
    case $target in
        wakeup|pair) cp fuzz/wakeup.dict "$OUT/$target.dict" ;;
    esac
done
