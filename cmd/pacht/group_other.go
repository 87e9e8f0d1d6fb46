//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// There are no groups and no polite signal here: the process itself is ended.
func stopGroup(p *os.Process) { killGroup(p) }
func killGroup(p *os.Process) { _ = p.Kill() } // one that is gone is what was wanted
