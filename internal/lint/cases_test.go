package lint

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fieldCases are the failures that other systems met in the field and that this one must
// survive. Each is named by a test that makes it happen, or docs/lease.md says to which later
// feature it belongs.
var fieldCases = []string{
	"S001", "S002", "S003", "S004", "S005", "S006", "S007", "S009",
	"S010", "S011", "S012", "S013", "S014", "S015", "S016", "S017", "S018", "S019",
	"S020", "S021", "S022", "S023", "S024", "S025", "S026", "S027", "S028", "S029",
	"S030", "S031", "S032", "S033", "S034", "S035", "S036", "S037", "S038", "S039",
	"S040", "S041", "S042", "S043", "S044", "S045", "S046", "S047", "S048", "S049",
	"S056", "S057", "S058", "S059", "S060", "S061", "S067",
	"S071", "S072", "S073", "S074", "S075", "S076", "S077", "S078", "S079", "S082", "S083", "S084",
	"S095", "S096", "S097", "S098", "S099",
	"S100", "S101", "S102", "S103", "S104", "S105", "S106", "S107",
}

func TestEachFieldCaseHasATestOrAPlace(t *testing.T) {
	m := thisModule(t)
	named := map[string]string{}
	id := regexp.MustCompile(`\bS[01]\d\d\b`)
	for _, f := range append(theLab(t), m.texts...) {
		if f.path == "docs/lease.md" || strings.HasPrefix(f.path, "storetest/") ||
			strings.HasSuffix(f.path, "_test.go") && !inside(f.path, "internal/lint") {
			for _, found := range id.FindAllString(string(f.text), -1) {
				named[found] = f.path
			}
		}
	}
	for _, c := range fieldCases {
		if named[c] == "" {
			t.Errorf("%s: no test names it, nor does docs/lease.md", c)
		}
	}
}

// Each case has a row on docs/lease.md, alone or as the end or inside of a range.
func TestLeasePageListsEachFieldCase(t *testing.T) {
	page := thisModule(t).text(t, "docs/lease.md")
	listed := map[string]bool{}
	for _, found := range regexp.MustCompile(`\bS([01]\d\d)(?: to S([01]\d\d))?`).FindAllStringSubmatch(page, -1) {
		first, _ := strconv.Atoi(found[1]) // three digits, each of them
		last, err := strconv.Atoi(found[2])
		if err != nil {
			last = first
		}
		for n := first; n <= last; n++ {
			listed[fmt.Sprintf("S%03d", n)] = true
		}
	}
	for _, c := range fieldCases {
		if !listed[c] {
			t.Errorf("%s: docs/lease.md does not list it", c)
		}
	}
}

// docs/lease.md lists each rule beside its tests; a test that it names must be there.
func TestLeasePageNamesTestsThatExist(t *testing.T) {
	m := thisModule(t)
	page, texts := m.text(t, "docs/lease.md"), append(theLab(t), m.texts...)
	for _, rule := range []string{"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12"} {
		if !regexp.MustCompile(`\b` + rule + `\b`).MatchString(page) {
			t.Errorf("docs/lease.md says nothing of %s", rule)
		}
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(page, -1) {
		found := false
		for _, f := range texts {
			found = found || strings.HasSuffix(f.path, ".go") && strings.Contains(string(f.text), "func "+name+"(")
		}
		if !found {
			t.Errorf("docs/lease.md names %s, and there is no such test", name)
		}
	}
}

// theLab is the tests of the fault lab, which is a module of its own.
func theLab(t *testing.T) (texts []textFile) {
	t.Helper()
	root := os.DirFS("../..")
	names, err := projectFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "faults/") && strings.HasSuffix(name, "_test.go") {
			text, err := fs.ReadFile(root, name)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, textFile{path: name, text: text})
		}
	}
	return texts
}
