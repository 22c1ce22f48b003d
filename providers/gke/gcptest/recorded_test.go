package gcptest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// recordedFields reads the list of fields that GKE was recorded to answer: for each its value, or "…" for one that differs between
// objects, and after " # " the reason why the double does otherwise.
func recordedFields(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("testdata/recorded.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fact, reason, _ := strings.Cut(line, " # ")
		name, value, ok := strings.Cut(strings.TrimSpace(fact), " ")
		if !ok || all[name][0] != "" {
			t.Fatalf("recorded.txt: %q", line)
		}
		all[name] = [2]string{strings.TrimSpace(value), reason}
	}
	return all
}

// flatten lists the fields of an answer by their paths.
func flatten(into map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[at] = "{}"
		}
		for name, part := range v {
			if name == "resourceLabels" && at == "pool.config" { // names of labels are not fields
				for label, value := range part.(map[string]any) {
					into[at+".resourceLabels["+label+"]"] = fmt.Sprintf("%q", value)
				}
				continue
			}
			flatten(into, at+"."+name, part)
		}
	default:
		text, _ := json.Marshal(v)
		into[at] = string(text)
	}
}

func fields(t *testing.T, into map[string]string, at string, m proto.Message) {
	t.Helper()
	text, err := protojson.MarshalOptions{}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "nodePools")
	flatten(into, at, v)
}

// TestRecordedFields: a cluster and a pool for which nothing is declared are answered field by field as GKE 1.34 and 1.35 were recorded to. What
// differs has a reason in the list.
func TestRecordedFields(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1}))
		have := map[string]string{}
		fields(w.T, have, "cluster", w.read())
		fields(w.T, have, "pool", w.get(cluster+"/nodePools/p"))
		want := recordedFields(w.T)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			value, reason := want[name][0], want[name][1]
			is, answered := have[name]
			same := answered && (value == "…" || is == value) || !answered && value == "-"
			switch {
			case same && reason != "" && value != "-":
				w.Errorf("%s is as recorded: take the reason %q out", name, reason)
			case !same && reason == "":
				w.Errorf("%s is %s, and was recorded as %s", name, is, value)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if _, listed := want[name]; !listed {
				w.Errorf("%s is answered (%s), and was not recorded: list it as - with the reason", name, have[name])
			}
		}
	})
}
