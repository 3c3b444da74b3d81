package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/run"
)

// A build is what there is to say of this program.
type build struct {
	Version  string `json:"version"`
	Program  string `json:"program,omitempty"` // where it is another module's
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that are not all in the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
}

func thisBuild() build {
	set, _ := kern.Level() // a wrong value of its variable has ended the program before
	b := build{Version: version(), Program: run.Program(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: set}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Say which Sotto this is, and which kernels it uses here", Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			b, w := thisBuild(), c.OutOrStdout()
			if asJSON {
				return writeJSON(w, b)
			}
			commit := "not known"
			if b.Commit != "" {
				commit = b.Commit
			}
			if b.Modified {
				commit += ", modified"
			}
			if b.Program != "" {
				fmt.Fprintf(w, "Program    %s\n", b.Program)
			}
			_, err := fmt.Fprintf(w, "Version    %s\nCommit     %s\nGo         %s\nPlatform   %s\nKernels    %s\n", b.Version, commit, b.Go, b.Platform, b.Kernels)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
