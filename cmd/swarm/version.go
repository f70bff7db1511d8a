package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"swarm/internal/flow"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.print(map[string]string{"version": version, "loops": flow.Version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintln(a.stdout, versionText())
			return err
		},
	}
}

// versionText is what swarm version and swarm --version print.
func versionText() string {
	return fmt.Sprintf("swarm %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
