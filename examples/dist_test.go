package examples_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// commitLine is what a program says that knows where it comes from.
var commitLine = regexp.MustCompile(`^swarm v0\.1\.0 \(commit [0-9a-f]{12}, 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ, go1\.`)

// builtFrom are the variables by which make says where a program comes from. The tests of a copy without
// git have them, too.
var builtFrom = []string{"VERSION=v0.1.0", "COMMIT=0123456789abcdef0123456789abcdef01234567", "DATE=2026-11-16T20:00:00Z"}

// makeTarget makes a target in the root of the module.
func makeTarget(t *testing.T, target string, vars ...string) {
	t.Helper()
	cmd := exec.Command("make", append([]string{target}, append(builtFrom, vars...)...)...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
}

// says runs a program and returns what it says.
func says(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestInstall: make install puts a program below an empty prefix, and it knows where it comes from.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	prefix := filepath.Join(t.TempDir(), "prefix")
	makeTarget(t, "install", "PREFIX="+prefix)
	if said := says(t, filepath.Join(prefix, "bin", "swarm"), "version"); !commitLine.MatchString(said) {
		t.Errorf("it says %q", said)
	}
}

// TestDist: each package that make dist makes for this machine can be installed into an empty folder,
// and works there.
func TestDist(t *testing.T) {
	if os.Getenv("SWARM_TEST_LONG") == "" {
		t.Skip("it builds the program for four systems: make test-long")
	}
	dist := t.TempDir()
	makeTarget(t, "dist", "DIST="+dist)
	here := runtime.GOOS + "-" + runtime.GOARCH
	for _, name := range []string{"linux-amd64.tar.gz", "linux-arm64.tar.gz", "darwin-amd64.tar.gz", "darwin-arm64.tar.gz", "npm.tgz"} {
		if _, err := os.Stat(filepath.Join(dist, "swarm-0.1.0-"+name)); err != nil {
			t.Error(err)
		}
	}
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = dist
	if out, err := check.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("the checksums: %v\n%s", err, out)
	}
	folder := t.TempDir()
	unpack(t, filepath.Join(dist, "swarm-0.1.0-"+here+".tar.gz"), folder)
	if said := says(t, filepath.Join(folder, "swarm-0.1.0-"+here, "swarm"), "version"); !commitLine.MatchString(said) {
		t.Errorf("the archive's program says %q", said)
	}
	if _, err := exec.LookPath("dpkg-deb"); err == nil && runtime.GOOS == "linux" {
		root := t.TempDir()
		deb := filepath.Join(dist, "swarm-0.1.0-"+here+".deb")
		if about := says(t, "dpkg-deb", "--field", deb); !strings.Contains(about, "Package: swarm\nVersion: 0.1.0\nArchitecture: "+runtime.GOARCH) {
			t.Errorf("the deb says %q", about)
		}
		says(t, "dpkg-deb", "--extract", deb, root)
		if said := says(t, filepath.Join(root, "usr", "bin", "swarm"), "version"); !commitLine.MatchString(said) {
			t.Errorf("the deb's program says %q", said)
		}
	}
	if _, err := exec.LookPath("npm"); err == nil {
		root := t.TempDir()
		says(t, "npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", root, filepath.Join(dist, "swarm-0.1.0-npm.tgz"))
		program := filepath.Join(root, "node_modules", ".bin", "swarm")
		if said := says(t, program, "version"); !commitLine.MatchString(said) {
			t.Errorf("the npm package's program says %q", said)
		}
		err := exec.Command(program, "show", "--no-such-flag").Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
			t.Errorf("it passes the exit code on as %v", err)
		}
	}
}

// unpack unpacks an archive.
func unpack(t *testing.T, file, folder string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			text, readErr := io.ReadAll(r)
			err = errors.Join(readErr, os.WriteFile(path, text, h.FileInfo().Mode()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
