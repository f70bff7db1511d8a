package run

import (
	"os/user"
	"path/filepath"
	"testing"
)

// A folder with the person's home in it is known, also to a service whose HOME is missing or says
// nothing.
func TestHoldsHome(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	own := t.TempDir()
	for home, holding := range map[string]string{own: own, "": u.HomeDir, "/": u.HomeDir, "//": u.HomeDir} {
		t.Setenv("HOME", home)
		for _, dir := range []string{holding, filepath.Dir(holding), "/"} {
			if !holdsHome(dir) {
				t.Errorf("HOME=%s: %s is shown", home, dir)
			}
		}
		if dir := filepath.Join(holding, "project"); holdsHome(dir) {
			t.Errorf("HOME=%s: %s is not shown", home, dir)
		}
	}
}
