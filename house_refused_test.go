package stoke_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// refusedCase is a test that has each call of an apply of a resource fail, and that plans
// again after it.
type refusedCase struct {
	file, test string
	has        string // text of the file by which the case of the resource is known
}

// refusedCases are such tests of the types of resources.
var refusedCases = map[string][]refusedCase{
	"gke_cluster":         {{"gke/refused_test.go", "TestPlanAfterARefusedApply", `"gke_cluster", labPath`}},
	"gke_disk":            {{"gke/refused_test.go", "TestPlanAfterARefusedApply", `"gke_disk", diskPath`}},
	"gke_disk_snapshot":   {{"gke/refused_test.go", "TestPlanAfterARefusedApply", `"gke_disk_snapshot", backupPath`}},
	"gke_filestore":       {{"gke/refused_test.go", "TestPlanAfterARefusedApply", `"gke_filestore", sharePath`}},
	"gke_firewall_rule":   {{"gke/refused_test.go", "TestPlanAfterARefusedApply", `"gke_firewall_rule", rulePath`}},
	"gke_node_pool":       {{"gke/refused_test.go", "TestPlanAfterARefusedApply", `"gke_node_pool", labPath`}},
	"kube_config_map":     {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_config_map"`}},
	"kube_manifest":       {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_manifest"`}},
	"kube_namespace":      {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_namespace"`}},
	"kube_priority_class": {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_priority_class"`}},
	"kube_rbac":           {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_rbac"`}},
	"kube_secret":         {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_secret"`}},
	"kube_volume_claim":   {{"kube/refusing_test.go", "TestPlanAfterARefusedApply", `{kind: "kube_volume_claim"`}},
	"metal_cluster":       {{"metal/refused_cluster_test.go", "TestPlanAfterARefusedCluster", `refusedLife{kind: "metal_cluster"`}},
	"metal_firewall":      {{"metal/refused_firewall_test.go", "TestPlanAfterARefusedFirewall", "job[firewallModel]"}},
	"metal_gpu_driver":    {{"metal/nvidia/refused_test.go", "TestPlanAfterARefusedCommand", `"metal_gpu_driver.a"`}},
	"metal_host":          {{"metal/refused_test.go", "TestPlanAfterARefusedApply", `Resources["metal_host"]`}},
	"metal_node":          {{"metal/refused_node_test.go", "TestPlanAfterARefusedNode", `refusedLife{kind: "metal_node"`}},
	"train_dataset":       {{"train/refused_dataset_test.go", "TestPlanAfterARefusedDataset", `"train_dataset"`}},
	"train_experiment": {
		{"train/refused_test.go", "TestPlanAfterARefusedChange", "b.make(experiment"},
		{"../cmd/stoke/kube_refused_test.go", "TestKubernetesRefusedCalls", "after the rescale"},
	},
	"train_image": {{"train/image_refused_test.go", "TestPlanAfterARefusedImageApply", "b.new(imageType)"}},
}

// TestEveryResourceIsRefused: each type of resource that the reference describes has a test
// that plans again after an apply whose calls failed.
func TestEveryResourceIsRefused(t *testing.T) {
	pages, err := filepath.Glob("docs/reference/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	known := make(map[string]bool)
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "`resource \""+name+"\" ") {
			continue // a data source, or a provider
		}
		known[name] = true
		if len(refusedCases[name]) == 0 {
			t.Errorf("%s: no test has its applies fail and plans again. Write one, and name it in refusedCases.", name)
		}
		for _, c := range refusedCases[name] {
			if lacks := c.missing(t); lacks != "" {
				t.Errorf("%s: %s has no %s", name, c.file, lacks)
			}
		}
	}
	for name := range refusedCases {
		if !known[name] {
			t.Errorf("%s is a resource of no provider", name)
		}
	}
}

// missing names the first part of a case that its file does not have; "" for none.
func (c refusedCase) missing(t *testing.T) string {
	t.Helper()
	name := filepath.Join("providers", filepath.FromSlash(c.file))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(file.Decls, func(d ast.Decl) bool { f, ok := d.(*ast.FuncDecl); return ok && f.Name.Name == c.test }) {
		return "function " + c.test
	}
	if !strings.Contains(string(text), c.has) {
		return c.has
	}
	return ""
}
