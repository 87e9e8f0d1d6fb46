package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func demoCommand(_ *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Kill workers in the middle of payments, and count what was lost",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return errors.New("the demo is not built yet") },
	}
}
