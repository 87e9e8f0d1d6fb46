package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/bench/peer"
	"github.com/pacht-queue/pacht/bench/result"
)

// machine says where the benchmark runs. What cannot be found out is empty.
func (b *Bench) machine(ctx context.Context) (result.Machine, error) {
	m := result.Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		Memory: memory(field("/proc/meminfo", "MemTotal")), Go: strings.TrimPrefix(runtime.Version(), "go"),
		Node: strings.TrimPrefix(strings.TrimSpace(b.file.Machine.Node), "v"), Settings: Settings, Disk: fileSystem(b.folder),
		SQLite: "modernc.org/sqlite " + peer.VersionOf("modernc.org/sqlite"),
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-") // what follows is the builder's
		m.Kernel = runtime.GOOS + " " + version + ", " + runtime.GOARCH
	}
	conn, err := pgx.Connect(ctx, b.server.URL("postgres"))
	if err != nil {
		return m, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SHOW server_version").Scan(&m.Postgres); err != nil {
		return m, fmt.Errorf("ask the server for its version: %w", err)
	}
	m.Postgres, _, _ = strings.Cut(m.Postgres, " (")
	return m, nil
}

// field is the value of a line "name : value".
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func memory(total string) string {
	var kB int
	if _, err := fmt.Sscanf(total, "%d kB", &kB); err != nil {
		return ""
	}
	return fmt.Sprintf("%.0f GB", float64(kB)/(1<<20))
}

// fileSystem is the type of the one that holds a folder: the longest mount point above it.
func fileSystem(folder string) (kind string) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	best := ""
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		inside := f[1] == "/" || folder == f[1] || strings.HasPrefix(folder, f[1]+"/")
		if inside && len(f[1]) >= len(best) {
			best, kind = f[1], f[2]
		}
	}
	return kind
}

// version is that of a module, or of a package of Node.js as it is installed.
func version(a peer.About) string {
	switch {
	case a.Version != "":
		return a.Version
	case a.Script == "":
		return peer.VersionOf(a.Module)
	}
	text, err := os.ReadFile(filepath.Join(nodeDir, "node_modules", a.Module, "package.json"))
	var installed struct{ Version string }
	if err != nil || json.Unmarshal(text, &installed) != nil {
		return ""
	}
	return installed.Version
}

// describe is a run in one line.
func describe(r result.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %-16s %-18s", r.Scenario, r.Peer, r.Variant)
	if r.Error != "" {
		fmt.Fprintf(&b, " FAILED: %s", r.Error)
		return b.String()
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		fmt.Fprintf(&b, "  %s %.5g", name, r.Values[name])
	}
	return b.String()
}
