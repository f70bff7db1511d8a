package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/api"
	"swarm/internal/term"
	"swarm/web"
)

func (a *app) exportCommand() *cobra.Command {
	var page, data string
	cmd := &cobra.Command{
		Use:   "export [RUN] (--html FILE | --json FILE)",
		Short: "Write a run into one file, as a web page or as JSON",
		Long: `Write everything that can be shown of a run into one file: agents, tasks, turns with their prompts and
outputs, mail, topics, artifacts, and the changes in the git tree. FILE - is standard output. A file
that exists is not replaced.

The page shows the run in a browser, without a server and without the internet. Values of keys that the
run knows are replaced in it, as in the log. Look through it before you pass it on.

` + newestRun,
		Example: "  swarm export --html run.html\n  swarm export @last --json run.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (page == "") == (data == "") {
				return swarm.Errorf(swarm.BadInput, "an export needs exactly one file").WithHint("write --html FILE or --json FILE")
			}
			_, l, err := a.openReader(args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			e, err := l.Export(cmd.Context())
			if err != nil {
				return err
			}
			var text []byte
			if page != "" {
				text, err = api.ExportPage(web.Files(), e)
			} else {
				text, err = json.Marshal(e)
				text = append(text, '\n')
			}
			if err != nil {
				return err
			}
			return a.writeExport(page+data, text)
		},
	}
	cmd.Flags().Var((*something)(&page), "html", "write a web page into this `file`")
	cmd.Flags().Var((*something)(&data), "json", "write JSON into this `file`")
	return cmd
}

// writeExport writes an exported run. It replaces no file.
func (a *app) writeExport(path string, text []byte) error {
	if path == "-" {
		_, err := a.stdout.Write(text)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return swarm.Errorf(swarm.BadInput, "%w", err).WithHint("name a file that does not exist, in a folder that does")
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // half a file, which the next try would not replace
		return err
	}
	fmt.Fprintf(a.stdout, "%s: %d bytes\n", term.Escape(path), len(text))
	return nil
}
