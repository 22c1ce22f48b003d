package state

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// terraformChecks is as Terraform 1.11.4 writes them.
const terraformChecks = `[
    {
      "object_kind": "check",
      "config_addr": "module.m.check.inner",
      "status": "fail",
      "objects": [
        {
          "object_addr": "module.m[\"p\"].check.inner",
          "status": "pass"
        },
        {
          "object_addr": "module.m[\"q\"].check.inner",
          "status": "fail",
          "failure_messages": [
            "k is q"
          ]
        }
      ]
    },
    {
      "object_kind": "resource",
      "config_addr": "terraform_data.a",
      "status": "unknown",
      "objects": null
    }
  ]`

func TestCheckResultsAsTerraformWritesThem(t *testing.T) {
	text := `{"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "x", "outputs": {}, "resources": [], "check_results": ` + terraformChecks + "}\n"
	s, err := Decode("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []CheckResult{
		{Kind: CheckedBlock, Config: "module.m.check.inner", Status: CheckFailed, Objects: []CheckedObject{
			{Address: `module.m["p"].check.inner`, Status: CheckPassed},
			{Address: `module.m["q"].check.inner`, Status: CheckFailed, Messages: []string{"k is q"}},
		}},
		{Kind: CheckedResource, Config: "terraform_data.a", Status: CheckUnknown},
	}
	if d := cmp.Diff(want, s.CheckResults()); d != "" {
		t.Error(d)
	}
	if out := string(s.Encode(2)); !strings.Contains(out, `"check_results": `+terraformChecks+"\n") {
		t.Errorf("written as\n%s", out)
	}
}

func TestCheckResultsInTheJournal(t *testing.T) {
	results := []CheckResult{{Kind: CheckedVariable, Config: "var.n", Status: CheckErred, Objects: []CheckedObject{{Address: "var.n", Status: CheckErred}}}}
	for _, list := range [][]CheckResult{results, {}} {
		w := &writer{}
		w.result(&Result{Checks: list})
		s := &scanner{buf: w.buf}
		r := s.result(intern{})
		s.end()
		if s.err != nil || r.Checks == nil || !EqualChecks(r.Checks, list) {
			t.Errorf("%s was read as %+v, %v", w.buf, r, s.err)
		}
	}
	for _, bad := range []string{`{"checks":{}}`, `{"checks":[{"objects":[3]}]}`, `{"checks":[{"status":3}]}`} {
		s := &scanner{buf: []byte(bad)}
		if s.result(intern{}); s.err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestCheckStatusAnd(t *testing.T) {
	order := []CheckStatus{CheckPassed, CheckUnknown, CheckFailed, CheckErred}
	for i, a := range order {
		for j, b := range order {
			if got := a.And(b); got != order[max(i, j)] {
				t.Errorf("%s and %s is %s", a, b, got)
			}
		}
	}
}
