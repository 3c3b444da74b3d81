package cli

import (
	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/run/runlog"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version of Sotto and the kernels that it uses here", Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return answer(c, asJSON, runlog.ThisBuild(), nil) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
