package swarm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestErrorsKeepTheirCause forbids swarm.Errorf to format an error with a verb other than %w.
// Decisions ask errors.Is for ErrFenced, ErrConflict or a context's end, and a cause that was
// formatted with %v is invisible to them.
//
// The test has no type information and goes by names: err, …Err, and a call of Error(). A call that
// drops its cause on purpose has the comment `//nocause: reason` on its line.
func TestErrorsKeepTheirCause(t *testing.T) {
	for _, p := range list(t) {
		for _, name := range p.files {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, pos := range lostCauses(files, file) {
				t.Errorf("%s: this formats an error without keeping it as the cause: write %%w, so that errors.Is finds it; or say why not with //nocause: reason", files.Position(pos))
			}
		}
	}
}

func TestLostCausesAreFound(t *testing.T) {
	const text = `package p

func f() {
	swarm.Errorf(k, "a: %v", err)
	swarm.Errorf(k, "a %d%%: %s", 1, openErr)
	swarm.Errorf(k, "a: %+v", x.Err)
	swarm.Errorf(k, "a: %s", x.err.Error())
	swarm.Errorf(k, "a: %-*q", 3, err)
	Errorf(k, "a: %v", err)

	swarm.Errorf(k, "a: %w", err)
	swarm.Errorf(k, "a: %v", other)
	swarm.Errorf(k, "a: %s", quoted(err))
	swarm.Errorf(k, "a: %v", err) //nocause: the cause holds a key
	fmt.Errorf("a: %v", err)
}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, pos := range lostCauses(files, file) {
		lines = append(lines, files.Position(pos).Line)
	}
	if len(lines) != 6 || lines[0] != 4 || lines[5] != 9 {
		t.Errorf("causes are lost in lines %v, want 4 to 9", lines)
	}
}

// lostCauses finds the arguments of Errorf that are errors and are formatted with another verb than
// %w.
func lostCauses(files *token.FileSet, file *ast.File) (lost []token.Pos) {
	exempt := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, "//nocause:"); ok && strings.TrimSpace(reason) != "" {
				exempt[files.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isErrorf(call.Fun) || len(call.Args) < 3 || exempt[files.Position(call.Pos()).Line] {
			return true
		}
		format, ok := call.Args[1].(*ast.BasicLit)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(format.Value)
		if err != nil {
			return true
		}
		for i, verb := range verbs(text) {
			if i+2 < len(call.Args) && verb != 'w' && isError(call.Args[i+2]) {
				lost = append(lost, call.Args[i+2].Pos())
			}
		}
		return true
	})
	return lost
}

// isErrorf reports whether a called function is swarm.Errorf, by the name in other packages or in
// the root itself.
func isErrorf(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name == "Errorf"
	case *ast.SelectorExpr:
		of, ok := f.X.(*ast.Ident)
		return ok && of.Name == "swarm" && f.Sel.Name == "Errorf"
	}
	return false
}

// isError reports by its name whether an argument is an error or the text of one.
func isError(arg ast.Expr) bool {
	switch arg := arg.(type) {
	case *ast.Ident:
		return arg.Name == "err" || strings.HasSuffix(arg.Name, "Err")
	case *ast.SelectorExpr:
		return isError(arg.Sel)
	case *ast.CallExpr:
		of, ok := arg.Fun.(*ast.SelectorExpr)
		return ok && of.Sel.Name == "Error" && len(arg.Args) == 0
	}
	return false
}

// verbs lists the verb of each argument, in order. The * of a width takes an argument too.
func verbs(format string) (of []byte) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.*", format[i]) >= 0; i++ {
			if format[i] == '*' {
				of = append(of, '*')
			}
		}
		if i < len(format) && format[i] != '%' {
			of = append(of, format[i])
		}
	}
	return of
}
