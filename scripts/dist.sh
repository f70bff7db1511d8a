#!/bin/sh
# dist.sh DIR: builds what is published, into DIR: an archive for each system, a deb for each processor,
# the npm package, and their checksums. GO, VERSION, COMMIT, DATE and PLATFORMS come from the environment.
set -eu
dir=${1:?usage: dist.sh DIR}
GO=${GO:-go}
VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo 0.0.0)}
COMMIT=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}
DATE=${DATE:-$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || true)}
PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
number=${VERSION#v}
case $number in [0-9]*.[0-9]*.[0-9]*) ;; *) number=0.0.0-$number ;; esac # a commit without a tag has no number
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	name=swarm-$number-$os-$arch
	mkdir -p "$work/$name"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch $GO build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE" -o "$work/$name/swarm" ./cmd/swarm
	cp LICENSE README.md CHANGELOG.md "$work/$name/"
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="${DATE:-1970-01-01T00:00:00Z}" -czf "$dir/$name.tar.gz" "$name" 2>/dev/null ||
		tar -C "$work" -czf "$dir/$name.tar.gz" "$name" # a tar without these options
	if [ "$os" = linux ] && command -v dpkg-deb > /dev/null; then
		root=$work/deb-$arch
		mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/doc/swarm"
		cp "$work/$name/swarm" "$root/usr/bin/swarm"
		cp LICENSE "$root/usr/share/doc/swarm/copyright"
		cat > "$root/DEBIAN/control" <<-END
			Package: swarm
			Version: $(printf %s "$number" | tr - '+')
			Architecture: $arch
			Maintainer: The swarm authors <swarm@localhost>
			Section: devel
			Priority: optional
			Description: runs teams of AI agents that talk to each other
			 One program runs coding agents, models and scripts in pipelines, teams and swarms.
		END
		chmod -R u=rwX,go=rX "$root"
		dpkg-deb --root-owner-group --build "$root" "$dir/$name.deb" > /dev/null
	fi
done

# The npm package has a small program that starts the binary of its system, which lies beside it.
npm=$work/package
mkdir -p "$npm"
cp -r packaging/npm/. LICENSE "$npm/"
sed "s/\"version\": \"0.0.0\"/\"version\": \"$number\"/" packaging/npm/package.json > "$npm/package.json"
for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	mkdir -p "$npm/bin/$os-$arch"
	cp "$work/swarm-$number-$os-$arch/swarm" "$npm/bin/$os-$arch/swarm"
done
tar -C "$work" -czf "$dir/swarm-$number-npm.tgz" package

cd "$dir"
if command -v sha256sum > /dev/null; then sum=sha256sum; else sum='shasum -a 256'; fi
$sum swarm-"$number"-* > SHA256SUMS
ls
