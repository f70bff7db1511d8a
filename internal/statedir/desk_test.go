package statedir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDeskInputs: what was kept is of one folder, and not of another that takes its place.
func TestDeskInputs(t *testing.T) {
	h, dir := newHome(t), filepath.Join(t.TempDir(), "desk")
	must(t, os.Mkdir(dir, 0o755))
	var got []string
	if h.DeskInputs(dir, &got) {
		t.Error("inputs are known that were never kept")
	}
	must(t, h.KeepDeskInputs(dir, []string{"a"}))
	must(t, h.KeepDeskInputs(dir, []string{"a", "b"}))
	if !h.DeskInputs(dir, &got) || len(got) != 2 {
		t.Errorf("kept are %v", got)
	}
	must(t, os.Rename(dir, dir+".moved")) // so the number of the folder is not free again
	must(t, os.Mkdir(dir, 0o755))
	if h.DeskInputs(dir, &got) {
		t.Error("another folder has the inputs of the one before")
	}
	must(t, h.ForgetDeskInputs(dir))
	must(t, h.ForgetDeskInputs(dir))
	must(t, os.Remove(dir))
	must(t, os.Rename(dir+".moved", dir))
	if h.DeskInputs(dir, &got) {
		t.Error("inputs are known that were forgotten")
	}
}
