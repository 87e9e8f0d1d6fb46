package lint

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

const mostLines = 400

// longFiles may be longer than others, each with the reason.
var longFiles = map[string]string{}

// filesStayShort: one file that nobody overlooks any more eats the others.
func filesStayShort(m *module) (broken []string) {
	for _, f := range m.files {
		for _, t := range m.texts {
			if t.path != f.path {
				continue
			}
			if n := bytes.Count(t.text, []byte("\n")); n > mostLines && longFiles[f.path] == "" {
				broken = append(broken, fmt.Sprintf("%s: %d lines, want at most %d: split it by what it holds", f.path, n, mostLines))
			}
		}
	}
	return broken
}

// filesAreNamedForWhatTheyHold: nothing collects what has no place.
func filesAreNamedForWhatTheyHold(m *module) (broken []string) {
	for _, f := range m.files {
		for _, name := range []string{"util", "utils", "common", "helper", "helpers", "misc"} {
			base := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
			if base == name || path.Base(f.dir) == name {
				broken = append(broken, fmt.Sprintf("%s: name it for what it holds", f.path))
			}
		}
	}
	return broken
}

// pathsAreOfNoMachine: what is written here holds on every machine.
func pathsAreOfNoMachine(m *module) (broken []string) {
	// In two parts, so that this file passes.
	var homes []string
	for _, name := range []string{"work", "root", "tmp", "home"} {
		homes = append(homes, "/"+name+"/")
	}
	homes = append(homes, "../"+"shared")
	for _, f := range m.texts {
		lines(f.text, func(n int, line string) {
			for _, home := range homes {
				i := strings.Index(line, home)
				// Part of a longer path of ours, such as docs/work/, is none of a machine.
				if i < 0 || i > 0 && isPathByte(line[i-1]) {
					continue
				}
				broken = append(broken, fmt.Sprintf("%s:%d: a path of one machine", f.path, n))
			}
		})
	}
	return broken
}

func isPathByte(b byte) bool {
	return b == '.' || b == '-' || b == '_' || b == '}' || b == ')' || b == '$' ||
		'0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
