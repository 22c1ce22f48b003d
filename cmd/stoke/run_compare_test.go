package main

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func TestGoal(t *testing.T) {
	for text, want := range map[string]metricGoal{
		"accuracy>=0.9": {"accuracy", ">=", 0.9}, "loss < 1e-3": {"loss", "<", 1e-3}, "a.b<=5": {"a.b", "<=", 5}, "x>-1": {"x", ">", -1},
	} {
		if got, err := parseGoal(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"accuracy", "accuracy=0.9", ">=1", "accuracy>=", "accuracy>=much"} {
		if got, err := parseGoal(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	value := func(step int64, name string, v float64) providers.RunEvent {
		return providers.RunEvent{Type: "evaluation", Step: step, Values: map[string]float64{name: v}}
	}
	back := providers.RunEvent{Type: "restore", Step: 15}
	for _, test := range []struct {
		goal   string
		events []providers.RunEvent
		want   string
	}{
		{"accuracy>=0.9", []providers.RunEvent{value(10, "accuracy", 0.8), value(20, "accuracy", 0.91), value(30, "accuracy", 0.99)}, "step 20, 0.0s (0.91)"},
		{"accuracy>=0.9", []providers.RunEvent{value(10, "accuracy", 0.8), value(20, "accuracy", 0.7)}, "not reached: 0.8"},
		{"accuracy>=0.9", []providers.RunEvent{value(20, "accuracy", 0.95), back, value(20, "accuracy", 0.5)}, "not reached: 0.5"},
		{"accuracy>=0.9", []providers.RunEvent{value(10, "accuracy", 0.95), back}, "step 10, 0.0s (0.95)"},
		{"loss<0.1", []providers.RunEvent{value(10, "loss", 0.01)}, "the run has no such metric"},
		{"evaluation.loss<0.1", []providers.RunEvent{value(10, "loss", 0.01)}, "step 10, 0.0s (0.01)"},
	} {
		goal, err := parseGoal(test.goal)
		if err != nil {
			t.Fatal(err)
		}
		var got goalResult
		for _, e := range test.events {
			goal.take(&got, e)
		}
		if got.text() != test.want {
			t.Errorf("%s: got %q, want %q", test.goal, got.text(), test.want)
		}
	}
}

func TestPathsOfArguments(t *testing.T) {
	at := cty.GetAttrPath("a").GetAttr("b").IndexInt(3).IndexString("k")
	if got := pathText(at); got != "a.b[3].k" {
		t.Errorf("the path is %q", got)
	}
	each := cty.GetAttrPath("a").GetAttr("b").Index(cty.UnknownVal(cty.Number))
	for place, want := range map[string]bool{"a": true, "b": false} {
		if covers(cty.GetAttrPath(place), at) != want {
			t.Errorf("%s covers %s: %t", place, pathText(at), !want)
		}
	}
	if !covers(each, at) || covers(at, each) || covers(cty.GetAttrPath("a").GetAttr("c"), at) {
		t.Error("an unknown key is any key, and a longer place covers nothing")
	}
	b := &providers.Block{
		Attributes: map[string]*providers.Attribute{"id": {Computed: true}, "size": {Optional: true, Computed: true}},
		Blocks:     map[string]*providers.NestedBlock{"worker": {Block: &providers.Block{Attributes: map[string]*providers.Attribute{"seen": {Computed: true}}}}},
	}
	for _, test := range []struct {
		path cty.Path
		want bool
	}{
		{cty.GetAttrPath("id"), true}, {cty.GetAttrPath("size"), false}, {cty.GetAttrPath("worker").IndexInt(0).GetAttr("seen"), true},
		{cty.GetAttrPath("worker").IndexInt(0).GetAttr("other"), false},
	} {
		if got := isResult(b, test.path); got != test.want {
			t.Errorf("%s is a result: %t", pathText(test.path), got)
		}
	}
}
