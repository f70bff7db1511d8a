// Command workflowcheck holds packages to what an engine that replays loops needs: no clock, no goroutine, no chance, no order of a
// map, in any function and in all that it calls. It is Temporal's workflowcheck, which looks only at functions that are workflows by
// their parameters and does not follow calls through interfaces; our loops are driven through one, so here every function of the
// packages on the command line is looked at.
//
// It is a module of its own, so that the program does not depend on Temporal.
package main

import (
	"go/ast"
	"go/types"
	"strings"

	"go.temporal.io/sdk/contrib/tools/workflowcheck/determinism"
	"go.temporal.io/sdk/contrib/tools/workflowcheck/workflow"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/singlechecker"
)

func main() {
	checker := determinism.NewChecker(determinism.Config{IdentRefs: workflow.DefaultIdentRefs})
	singlechecker.Main(&analysis.Analyzer{
		Name:      "workflowcheck",
		Doc:       "finds functions that a replay could not repeat",
		FactTypes: []analysis.Fact{&determinism.PackageNonDeterminisms{}, &determinism.NonDeterminisms{}},
		Run: func(pass *analysis.Pass) (any, error) {
			_, err := checker.Run(pass)
			if err == nil {
				report(pass)
			}
			return nil, err
		},
	})
}

// report tells of each function of a package. Of a package that is only imported nothing is shown.
func report(pass *analysis.Pass) {
	known := determinism.NewPackageLookupCache(pass)
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			f, _ := decl.(*ast.FuncDecl)
			if f == nil || strings.HasSuffix(pass.Fset.Position(f.Pos()).Filename, "_test.go") {
				continue
			}
			fn, _ := pass.TypesInfo.ObjectOf(f.Name).(*types.Func)
			for _, reason := range known.PackageNonDeterminisms(fn.Pkg())[fn.FullName()] {
				lines := determinism.NonDeterminisms{reason}.AppendChildReasonLines(fn.FullName(), nil, 0, "  ", true, fn.Pkg(), known, map[string]bool{})
				pass.Report(analysis.Diagnostic{Pos: f.Pos(), Message: strings.Join(lines, "\n")})
			}
		}
	}
}
