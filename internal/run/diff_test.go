package run

import "testing"

// A patch is split into its files, whatever is in their names and lines.
func TestSplitPatch(t *testing.T) {
	const patch = `diff --git a/new.txt b/new.txt
new file mode 100644
index 0000000..ce01362
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+hello
+diff --git a/x b/x
diff --git a/old name b/old name
deleted file mode 100644
index ce01362..0000000
--- a/old name	
+++ /dev/null
@@ -1 +0,0 @@
-hello
diff --git a/was.go b/is.go
similarity index 90%
rename from was.go
rename to is.go
--- a/was.go
+++ b/is.go
@@ -1 +1 @@
--- a/trick
+++ b/trick
diff --git "a/\303\244.bin" "b/\303\244.bin"
index 1..2 100644
Binary files "a/\303\244.bin" and "b/\303\244.bin" differ
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`
	want := []FileDiff{
		{Path: "new.txt", Status: "added", Added: 2},
		{Path: "old name", Status: "deleted", Deleted: 1},
		{Path: "is.go", From: "was.go", Status: "renamed", Added: 1, Deleted: 1},
		{Path: "ä.bin", Status: "modified", Binary: true},
		{Path: "run.sh", Status: "modified"},
	}
	files := splitPatch([]byte(patch))
	whole := ""
	for i := range files {
		whole += files[i].Patch
		files[i].Patch = ""
	}
	if len(files) != len(want) {
		t.Fatalf("%+v", files)
	}
	for i := range want {
		if files[i] != want[i] {
			t.Errorf("%+v, want %+v", files[i], want[i])
		}
	}
	if whole != patch {
		t.Errorf("the parts are %q", whole)
	}
	if files := splitPatch(nil); len(files) != 0 {
		t.Errorf("of nothing: %+v", files)
	}
	if files := splitPatch([]byte(" a.txt | 2 +-\n")); len(files) != 0 {
		t.Errorf("of a list: %+v", files)
	}
}
