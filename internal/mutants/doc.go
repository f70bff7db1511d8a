// Package mutants tests the tests. A mutant is the program with one promise broken by a small change
// of its source. For each mutant the test that guards the promise must fail. The package has tests
// only.
//
// The list is in list_test.go. `make mutants` runs all of it, `go test ./internal/mutants` the quick
// ones.
package mutants
