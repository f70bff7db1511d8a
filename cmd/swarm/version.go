package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"swarm/internal/flow"
)

// The linker sets commit and date, as it sets version. Without it, the Go command has noted both if it
// built the program in a clone.
var commit, date string

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version, commit and date",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				v := map[string]string{"version": version, "loops": flow.Version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
				if commit, date := builtFrom(); commit != "" {
					v["commit"], v["date"] = commit, date
				}
				return a.print(v)
			}
			_, err := fmt.Fprintln(a.stdout, versionText())
			return err
		},
	}
}

// versionText is what swarm version and swarm --version print.
func versionText() string {
	parts := []string{}
	if commit, date := builtFrom(); commit != "" {
		parts = append(parts, "commit "+commit[:min(len(commit), 12)])
		if date != "" {
			parts = append(parts, date)
		}
	}
	parts = append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	return "swarm " + version + " (" + strings.Join(parts, ", ") + ")"
}

// builtFrom returns the commit that the program was built from, and the date of that commit; "" = not
// known.
func builtFrom() (of, at string) {
	of, at = commit, date
	if info, ok := debug.ReadBuildInfo(); ok && of == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				of = s.Value
			case "vcs.time":
				at = s.Value
			}
		}
	}
	return of, at
}
