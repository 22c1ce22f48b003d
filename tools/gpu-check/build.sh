#!/bin/sh
# Builds the folder that a machine with an NVIDIA GPU and without a network needs for
# check.sh: programs, tests, data, configurations, and the twins in Python. It prints the
# size and refuses more than 60 MiB.
#   tools/gpu-check/build.sh FOLDER
# STOKE_TEST_DATA names the folder with mnist and cifar10; without it the runs on real
# data are left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
to=${1:?usage: build.sh FOLDER}
[ -z "${STOKE_TEST_DATA:-}" ] || STOKE_TEST_DATA=$(cd "$STOKE_TEST_DATA" && pwd)
rm -rf "$to"
mkdir -p "$to/bin"
to=$(cd "$to" && pwd)
cd "$root"
export CGO_ENABLED=0
go build -trimpath -ldflags '-s -w' -o "$to/bin/stoke" ./cmd/stoke
go build -trimpath -tags gpu -ldflags '-s -w' -o "$to/bin/stoke-trainer-gpu" ./cmd/stoke-trainer
go test -c -trimpath -tags gpu -ldflags '-s -w' -o "$to/bin/gpu.test" ./runtime/engine/xla/gpu
CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations" go build -trimpath -ldflags '-s -w' -o "$to/bin/stoke-gpu" ./cmd/stoke-gpu
cp -r "$here/python" "$here/check.sh" "$here/parts.sh" "$here/mnist.tf" "$here/resnet20.tf" "$here/speed.tf" "$to"
if [ -n "${STOKE_TEST_DATA:-}" ]; then
	mkdir -p "$to/data"
	cp -r "$STOKE_TEST_DATA/mnist" "$to/data/mnist"
	chmod -R u+w "$to/data"
	gzip -d -f "$to"/data/mnist/*.gz 2>/dev/null || true
	mkdir "$to/data/cifar10"
	for part in train test; do
		go run -C tools ./gpu-check/halve "$STOKE_TEST_DATA/cifar10/$part.zip" "$to/data/cifar10/$part.zip"
	done
	xz -9e -f "$to"/data/cifar10/*.zip "$to"/data/mnist/* & # JPEG files of 1 kB have mostly the same header
fi
for program in stoke stoke-trainer-gpu gpu.test stoke-gpu; do
	xz --x86 --lzma2=preset=9e,dict=128MiB -f "$to/bin/$program" &
done
wait
if [ "$(ls "$to"/bin/*.xz | wc -l)" != 4 ]; then
	echo "The programs could not be packed." >&2
	exit 1
fi
size=$(du -sk "$to" | cut -f1)
echo "$to: $size KiB"
if [ "$size" -gt $((60 * 1024)) ]; then
	echo "The folder has more than 60 MiB." >&2
	exit 1
fi
