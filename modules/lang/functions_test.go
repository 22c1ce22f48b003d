package lang

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

var update = flag.Bool("update", false, "rewrite golden files")

// cases reads testdata/functions.txt: an expression on a line, and after it,
// behind "= ", its value as JSON or its error.
func cases(t testing.TB) (exprs, results []string) {
	content, err := os.ReadFile("testdata/functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if result, ok := strings.CutPrefix(line, "= "); ok {
			results[len(results)-1] = result
		} else {
			exprs, results = append(exprs, line), append(results, "")
		}
	}
	return exprs, results
}

// evaluate returns the value of an expression as JSON, or its error.
func evaluate(text string, table map[string]function.Function) string {
	expr, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
	if diags.HasErrors() {
		return "error: " + diags[0].Detail
	}
	v, diags := expr.Value(&hcl.EvalContext{Functions: table})
	if diags.HasErrors() {
		return "error: " + strings.Join(strings.Fields(diags[0].Detail), " ")
	}
	if v.ContainsMarked() {
		return "(sensitive value)"
	}
	if !v.IsWhollyKnown() {
		return "(unknown)"
	}
	out, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return "error: " + err.Error()
	}
	return string(out)
}

func TestFunctions(t *testing.T) {
	table := NewFunctions(Options{BaseDir: "testdata/files", PlanTime: time.Unix(1.7e9, 0)})
	exprs, results := cases(t)
	var all strings.Builder
	for i, expr := range exprs {
		got := evaluate(expr, table)
		fmt.Fprintf(&all, "%s\n= %s\n", expr, got)
		if got != results[i] && !*update {
			t.Errorf("%s:\n%s", expr, cmp.Diff(results[i], got))
		}
	}
	if *update {
		if err := os.WriteFile("testdata/functions.txt", []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Every function of the language is there, and the table tries each twice.
func TestFunctionNames(t *testing.T) {
	content, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(content))
	table := Functions(".")
	exprs, _ := cases(t)
	all := strings.Join(exprs, "\n")
	once := "base64sha256 base64sha512 filebase64sha256 filebase64sha512 filesha1 filesha256 filesha512 " +
		"md5 sha1 sha256 sha512 abspath timestamp plantimestamp uuid templatestring"
	for _, name := range names {
		if _, ok := table[name]; !ok {
			t.Errorf("no function %s", name)
		}
		if _, ok := table["core::"+name]; !ok {
			t.Errorf("no function core::%s", name)
		}
		n := len(regexp.MustCompile(`\b`+name+`\(`).FindAllString(all, -1))
		if n < 2 && !strings.Contains(once, name) {
			t.Errorf("%d cases for %s", n, name)
		}
	}
	if len(table) != 2*len(names) {
		t.Errorf("%d functions, not %d", len(table), 2*len(names))
	}
}

// differences are cases in which Terraform 1.11 fails and we do not.
var differences = map[string]string{
	`cidrsubnets("0.0.0.0/0", 1, 2)`:               "it looks for the subnet before the first",
	`element(["a", "b"], -1)`:                      "later versions count from the end",
	`formatdate("YYYY", plantimestamp()) > "2000"`: "its console has no plan",
}

// TestLikeTerraform compares the whole table with terraform's console.
func TestLikeTerraform(t *testing.T) {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	exprs, results := cases(t)
	// The console evaluates one line: a list of all results.
	var in strings.Builder
	for _, expr := range exprs {
		fmt.Fprintf(&in, "try(nonsensitive(jsonencode(%s)), \"failed\"), ", expr)
	}
	cmd := exec.Command(terraform, "console")
	cmd.Dir = "testdata/files"
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
	cmd.Stdin = strings.NewReader("jsonencode([" + in.String() + "])\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("terraform console: %v\n%s", err, errs.String())
	}
	var lines []string
	if err := json.Unmarshal([]byte(unquoted(t, out.String())), &lines); err != nil || len(lines) != len(exprs) {
		t.Fatalf("%d results for %d expressions: %v\n%s%s", len(lines), len(exprs), err, out.String(), errs.String())
	}
	for i, want := range lines {
		got := results[i]
		if strings.HasPrefix(got, "error: ") {
			got = "failed"
		}
		if got != want && got != "(sensitive value)" && differences[exprs[i]] == "" {
			t.Errorf("%s: we have %s, terraform %s", exprs[i], got, want)
		}
	}
}

func unquoted(t *testing.T, literal string) string {
	expr, diags := hclsyntax.ParseExpression([]byte(literal), "x", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return v.AsString()
}
