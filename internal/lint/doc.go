// Package lint holds the rules of this repository as tests: which package may import which,
// where time and SQL may stand, what has a comment. It has no code of its own. Each rule is a
// function that names what breaks it, and rules_test.go shows each rule something that does.
package lint
