package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

func TestParallelismAmongProviders(t *testing.T) {
	const aws, metal, one = "registry.terraform.io/hashicorp/aws", "registry.terraform.io/stokehq/metal", "registry.terraform.io/a/one"
	c := providers.Catalogue{
		aws: {}, metal: {Limits: providers.Limits{AtOnce: 64}}, one: {Limits: providers.Limits{Operations: 1}},
	}
	for _, tt := range []struct {
		name   string
		used   []string
		given  []string // -parallelism
		n      int      // 0: the engine's usual number
		limits plan.Limits
	}{
		{"nobody bears more", []string{aws, one}, nil, 0, nil},
		{"nothing", nil, nil, 0, nil},
		{"metal", []string{metal}, nil, 64, plan.Limits{metal: 64}},
		{"others keep the usual number", []string{aws, metal, one}, nil, 64, plan.Limits{metal: 64, aws: 10}},
		{"the command line decides", []string{aws, metal}, []string{"3"}, 3, nil},
		{"a limit of a kind", []string{aws, metal}, []string{"metal_host=5"}, 64, plan.Limits{metal: 64, aws: 10, "metal_host": 5}},
		{"a limit of a provider", []string{aws, metal}, []string{"metal=20", "hashicorp/aws=2"}, 64, plan.Limits{"metal": 20, "hashicorp/aws": 2}},
	} {
		var p parallelism
		for _, text := range tt.given {
			if err := p.Set(text); err != nil {
				t.Fatal(err)
			}
		}
		n, limits := p.limitsFor(tt.used, c)
		if d := cmp.Diff(tt.limits, limits); n != tt.n || d != "" {
			t.Errorf("%s: %d %s", tt.name, n, d)
		}
	}
}
