package modules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edges lists a graph as lines of the form "a -> b, c".
func edges(nodes []*GraphNode) []string {
	var lines []string
	for _, n := range nodes {
		var needs []string
		for _, needed := range unique(n.Needs) {
			needs = append(needs, needed.Address())
		}
		slices.Sort(needs)
		lines = append(lines, strings.TrimSuffix(n.Address()+" -> "+strings.Join(needs, ", "), " -> "))
	}
	slices.Sort(lines)
	return lines
}

func load(t *testing.T, files map[string]string) *Module {
	t.Helper()
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	root, _, diags := Load(InMemory(content), ".")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return root
}

func TestSummary(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"through locals, variables and outputs", map[string]string{
			"main.tf": `
				locals { id = terraform_data.a.id }
				resource "terraform_data" "a" {}
				resource "terraform_data" "b" { input = module.m.y }
				module "m" {
					source = "./m"
					x = local.id
				}`,
			"m/main.tf": `
				variable "x" {}
				resource "terraform_data" "in" { input = var.x }
				output "y" { value = terraform_data.in.id }
				output "z" { value = var.x }`,
		}, []string{"module.m.terraform_data.in -> terraform_data.a", "terraform_data.a", "terraform_data.b -> module.m.terraform_data.in"}},
		{"meta-arguments", map[string]string{
			"main.tf": `
				resource "terraform_data" "a" {}
				resource "terraform_data" "b" { count = length(terraform_data.a.id) }
				resource "terraform_data" "c" { for_each = terraform_data.b }
				resource "terraform_data" "d" { depends_on = [terraform_data.c] }
				resource "terraform_data" "e" {
					lifecycle { replace_triggered_by = [terraform_data.d] }
				}
				resource "terraform_data" "f" {
					lifecycle {
						precondition {
							condition     = terraform_data.e.id != ""
							error_message = "no"
						}
					}
				}`,
		}, []string{
			"terraform_data.a", "terraform_data.b -> terraform_data.a", "terraform_data.c -> terraform_data.b",
			"terraform_data.d -> terraform_data.c", "terraform_data.e -> terraform_data.d", "terraform_data.f -> terraform_data.e",
		}},
		{"a module as a whole", map[string]string{
			"main.tf": `
				module "m" {
					source = "./m"
				}
				resource "terraform_data" "b" { depends_on = [module.m] }
				resource "terraform_data" "c" { input = module.m }`,
			"m/main.tf": `
				resource "terraform_data" "in" {}
				resource "terraform_data" "hidden" {}
				output "y" { value = terraform_data.in.id }`,
		}, []string{
			"module.m.terraform_data.hidden", "module.m.terraform_data.in",
			"terraform_data.b -> module.m.terraform_data.hidden, module.m.terraform_data.in",
			"terraform_data.c -> module.m.terraform_data.in",
		}},
		{"JSON", map[string]string{
			"main.tf.json": `{"resource": {"terraform_data": {"a": {}, "b": {"input": ["${terraform_data.a.id}"]}}}}`,
		}, []string{"terraform_data.a", "terraform_data.b -> terraform_data.a"}},
		{"a ring", map[string]string{
			"main.tf": "locals {\n a = local.b\n b = [local.a, terraform_data.a.id]\n}\nresource \"terraform_data\" \"a\" {}\nresource \"terraform_data\" \"b\" { input = local.b }",
		}, []string{"terraform_data.a", "terraform_data.b -> terraform_data.a"}},
		{"what is not there", map[string]string{
			"main.tf": `resource "terraform_data" "b" { input = [local.x, terraform_data.y, module.z.a] }`,
		}, []string{"terraform_data.b"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, edges(Summary(Graph(load(t, c.files))))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSummaryIsLinear has n resources that all use a list of n others.
func TestSummaryIsLinear(t *testing.T) {
	const n = 300
	var b strings.Builder
	b.WriteString("locals {\n all = [")
	for i := range n {
		fmt.Fprintf(&b, "terraform_data.a%d.id, ", i)
	}
	b.WriteString("]\n}\n")
	for i := range n {
		fmt.Fprintf(&b, "resource \"terraform_data\" \"a%d\" {}\nresource \"terraform_data\" \"b%d\" { input = local.all }\n", i, i)
	}
	nodes := Summary(Graph(load(t, map[string]string{"main.tf": b.String()})))
	total := 0
	for _, node := range nodes {
		total += len(node.Needs)
	}
	if total > 3*n || len(nodes) != 2*n+1 {
		t.Errorf("%d nodes and %d edges", len(nodes), total)
	}
}
