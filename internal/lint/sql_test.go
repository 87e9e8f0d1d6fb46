package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	sqlStart = regexp.MustCompile(`(?s)^\s*(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CREATE|ALTER|DROP|TRUNCATE)\s` +
		`|(?i)^\s*(select\s.*\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|create\s+(table|view|index|function)\s)`)
	sqlStar      = regexp.MustCompile(`(?i)(\bselect|\breturning|\bdistinct|,|\.)\s*\*`)
	sqlSilent    = regexp.MustCompile(`'[^']*'|--[^\n]*`) // whichever begins first hides the other
	sqlLowerWord = regexp.MustCompile(`(?m)^\s*(select|insert into|update|delete from|from|where|returning|with|order by|group by|limit|on conflict|left join|join)\s`)
)

// sqlStandsInItsFiles: no SQL text in Go, tests, harnesses and examples apart.
func sqlStandsInItsFiles(m *module) (broken []string) {
	for _, f := range m.files {
		if f.test || inside(f.dir, "examples", "storetest", "internal") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && sqlStart.MatchString(text) {
				broken = append(broken, fmt.Sprintf("%s: SQL text in Go: a statement has a file of its own under sql/", m.at(lit)))
			}
			return true
		})
	}
	return broken
}

// sqlNamesItsColumns: a column that a later migration adds must not change what a
// statement answers, and breaks statements that a driver has prepared.
func sqlNamesItsColumns(m *module) (broken []string) {
	for _, f := range m.texts {
		if path.Ext(f.path) != ".sql" {
			continue
		}
		lines(f.text, func(n int, line string) {
			if sqlStar.MatchString(bareSQL(line)) {
				broken = append(broken, fmt.Sprintf("%s:%d: list the columns instead of *", f.path, n))
			}
		})
	}
	return broken
}

// statementsAreReadable: each file under sql/ is one statement behind a comment that says
// what it promises, with upper-case keywords.
func statementsAreReadable(m *module) (broken []string) {
	for _, f := range m.texts {
		if path.Ext(f.path) != ".sql" || path.Base(path.Dir(f.path)) != "sql" || inside(f.path, "examples") {
			continue
		}
		text := string(f.text)
		if first, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(first, "-- ") {
			broken = append(broken, f.path+": begin with a comment that says what the statement promises")
		}
		bare := strings.TrimSuffix(strings.TrimSpace(bareSQL(text)), ";")
		if bare == "" {
			broken = append(broken, f.path+": no statement in it")
		}
		if strings.Contains(bare, ";") {
			broken = append(broken, f.path+": one statement in a file")
		}
		if word := sqlLowerWord.FindString(bare); word != "" {
			broken = append(broken, fmt.Sprintf("%s: keyword %q in lower case", f.path, strings.TrimSpace(word)))
		}
	}
	return broken
}

// bareSQL leaves out comments and what stands in literals.
func bareSQL(text string) string {
	return sqlSilent.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "--") {
			return ""
		}
		return "''"
	})
}
