// Package soak lets workers come and go while jobs pass through, and looks whether anything
// grows: goroutines, connections, file handles, memory, rows, tables.
package soak
