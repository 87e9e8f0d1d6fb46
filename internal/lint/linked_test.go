package lint

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A user's program must not carry test libraries along, by whatever way they came in.
func TestProductLinksNoTestLibraries(t *testing.T) {
	m := thisModule(t)
	var product []string
	for _, f := range m.files {
		pkg := "./" + f.dir
		if f.test || inside(f.dir, append([]string{"pachttest", "examples"}, testFolders...)...) || slices.Contains(product, pkg) {
			continue
		}
		product = append(product, pkg)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-deps"}, product...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "context") {
		t.Fatalf("go list names nothing that is linked: %s", out)
	}
	for _, library := range []string{"testing", "go.uber.org/goleak", "pgregory.net/rapid", modulePath + "/internal/pgtest", modulePath + "/storetest"} {
		if slices.Contains(linked, library) {
			t.Errorf("the product links %s", library)
		}
	}
}
