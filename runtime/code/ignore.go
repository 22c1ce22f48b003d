package code

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreFile is the name of the file that says which files are left out. It is
// itself not part of a snapshot.
const ignoreFile = ".stokeignore"

// defaultIgnores are files that change without a change of the code. A line of
// the ignore file that begins with ! takes one in again.
const defaultIgnores = `
.git
.hg/
.svn/
__pycache__/
*.py[co]
.venv/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.ipynb_checkpoints/
.DS_Store
.terraform/
.terraform.lock.hcl
*.tf
*.tf.json
*.tfvars
*.tfstate
*.tfstate.*
*.tfplan
`

// rule is one line of an ignore file.
type rule struct {
	pattern string // of doublestar, for whole names
	include bool   // the line began with !
	folder  bool   // only folders match
}

// ignore holds the rules in their order: the last rule that matches decides.
type ignore []rule

// parseIgnore reads an ignore file after the default rules.
func parseIgnore(text string) (ignore, error) {
	var rules ignore
	for _, line := range strings.Split(defaultIgnores, "\n") {
		r, ok, err := parseRule(line)
		if err != nil {
			return nil, err
		}
		if ok {
			rules = append(rules, r)
		}
	}
	for i, line := range strings.Split(text, "\n") {
		r, ok, err := parseRule(line)
		if err != nil {
			return nil, &Fault{Path: ignoreFile, What: fmt.Sprintf("line %d is not a pattern: %v", i+1, err),
				Advice: "write it as in a .gitignore file"}
		}
		if ok {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// parseRule translates a line of gitignore's syntax into a pattern for
// doublestar; ok is false for empty lines and comments.
func parseRule(line string) (r rule, ok bool, err error) {
	line = trimSpaces(strings.TrimSuffix(line, "\r"))
	if line == "" || line[0] == '#' {
		return rule{}, false, nil
	}
	if line[0] == '!' {
		r.include, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.folder, line = true, strings.TrimRight(line, "/")
	}
	if line == "" {
		return rule{}, false, nil
	}
	if strings.Contains(line, "[[:") {
		return rule{}, false, fmt.Errorf("classes such as [[:alpha:]] are not supported")
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	// Braces are plain characters in gitignore, and alternatives in doublestar.
	r.pattern = escapeBraces(line)
	if !anchored {
		r.pattern = "**/" + r.pattern
	}
	if strings.HasSuffix(r.pattern, "/**") { // all inside, but not the folder itself
		r.pattern += "/*"
	}
	if !doublestar.ValidatePattern(r.pattern) {
		return rule{}, false, fmt.Errorf("%q has an open bracket or ends with a backslash", line)
	}
	return r, true, nil
}

// trimSpaces removes spaces at the end of a line, except one after a backslash.
func trimSpaces(line string) string {
	short := strings.TrimRight(line, " ")
	backslashes := len(short) - len(strings.TrimRight(short, `\`))
	if backslashes%2 == 1 && len(short) < len(line) {
		return short + " "
	}
	return short
}

func escapeBraces(line string) string {
	var out strings.Builder
	escaped := false
	for _, c := range line {
		if !escaped && (c == '{' || c == '}') {
			out.WriteByte('\\')
		}
		escaped = !escaped && c == '\\'
		out.WriteRune(c)
	}
	return out.String()
}

// matches reports whether a file or folder is left out. Files in a folder that is
// left out are never read, so that no rule can include them.
func (rules ignore) matches(name string, folder bool) bool {
	if name == ignoreFile {
		return true
	}
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if r.folder && !folder {
			continue
		}
		if doublestar.MatchUnvalidated(r.pattern, name) {
			return !r.include
		}
	}
	return false
}
