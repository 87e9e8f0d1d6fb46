package main

import (
	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// completeWith lets the shell complete a flag from a fixed list.
func completeWith(c *cobra.Command, flag string, values ...string) {
	err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

func statusNames(finished bool) []string {
	var names []string
	for _, s := range pacht.Statuses {
		if !finished || s.Finished() {
			names = append(names, string(s))
		}
	}
	return names
}
